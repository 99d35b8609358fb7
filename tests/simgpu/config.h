/* SPDX-License-Identifier: MIT
 *
 * The simulated machine as the environment describes it: how many GPUs, how large, what a context
 * costs. Shared by libcuda.so.1 and libnvidia-ml.so.1. Read once by each, when it is initialised.
 */
#ifndef SIMGPU_CONFIG_H
#define SIMGPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_DEVICES_MAX 16u

struct config {
    unsigned devices;
    uint64_t memory_bytes;   /* of each device */
    uint64_t reserved_bytes; /* which each has besides, for itself */
    uint64_t context_bytes;  /* what one context costs; 0: nothing, nor do its streams */
    /* What the card gives at cuInit, and for a context besides, and NVML counts for no process. */
    uint64_t start_hidden_bytes, context_hidden_bytes;
    const char *device_name;
    bool is_h200; /* no place for CUDA 2.x's 32-bit addresses: its contexts and calls are refused */
    bool is_mig;  /* NVML calls each device a part of a larger one */
    bool hides_processes; /* NVML lists none, as within a pid namespace */
    bool hides_figures;   /* NVML does not know what they hold, as in some virtual machines */
    bool loads_eagerly;   /* libraries as modules: when they are loaded, not when first used */
};

/* Reads SIMGPU_DEVICES, SIMGPU_PROFILE, SIMGPU_MEMORY_MB and SIMGPU_CONTEXT_MB (the last two
 * override the profile), SIMGPU_RESERVED_MB, SIMGPU_MIG, SIMGPU_HIDE_PROCESSES,
 * SIMGPU_HIDE_FIGURES and CUDA_MODULE_LOADING. A value that is no number, or 0 where there cannot
 * be none, counts as unset. */
struct config config_read(void);

/* The shared file's path: SIMGPU_STATE, else one for each user in /dev/shm or /tmp. */
void config_state_path(char *path, unsigned path_bytes);

#endif
