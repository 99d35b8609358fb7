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
    uint64_t memory_bytes;  /* of each device */
    uint64_t context_bytes; /* what one context costs */
    const char *device_name;
    bool is_h200; /* no place for CUDA 2.x's 32-bit addresses: its contexts and calls are refused */
};

/* Reads SIMGPU_DEVICES, SIMGPU_PROFILE, SIMGPU_MEMORY_MB and SIMGPU_CONTEXT_MB; the last two
 * override the profile. A value that is no positive number counts as unset. */
struct config config_read(void);

/* The shared file's path: SIMGPU_STATE, else one for each user in /dev/shm or /tmp. */
void config_state_path(char *path, unsigned path_bytes);

#endif
