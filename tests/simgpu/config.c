// SPDX-License-Identifier: MIT
//
// Reads the environment into struct config; see config.h. Knows defaults and profiles, opens
// nothing.

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB 1048576u

static uint64_t config_number(const char *variable, uint64_t fallback, uint64_t least,
                              uint64_t most)
{
    const char *text = getenv(variable);
    char *end;

    if (!text || *text < '0' || *text > '9')
        return fallback;
    uint64_t value = strtoull(text, &end, 10);
    if (*end || value < least)
        return fallback;
    return value < most ? value : most;
}

static bool config_says(const char *variable, const char *wanted)
{
    const char *text = getenv(variable);

    return text && strcmp(text, wanted) == 0;
}

struct config config_read(void)
{
    uint64_t memory_mb = 8192, context_mb = 64;
    struct config config = {.device_name = "Simulated GPU"};

    if (config_says("SIMGPU_PROFILE", "h200")) {
        memory_mb = 143771;
        context_mb = 518;
        config.device_name = "NVIDIA H200";
        config.is_h200 = true;
        config.start_hidden_bytes = 13 * MIB / 4;    /* 3.25 MiB */
        config.context_hidden_bytes = 89 * MIB / 16; /* 523.56 MiB of the card's, 518 of NVML's */
    }
    config.devices = (unsigned)config_number("SIMGPU_DEVICES", 1, 1, CONFIG_DEVICES_MAX);
    config.memory_bytes = config_number("SIMGPU_MEMORY_MB", memory_mb, 1, UINT32_MAX) * MIB;
    config.context_bytes = config_number("SIMGPU_CONTEXT_MB", context_mb, 0, UINT32_MAX) * MIB;
    config.reserved_bytes = config_number("SIMGPU_RESERVED_MB", 0, 1, UINT32_MAX) * MIB;
    if (!config.context_bytes)
        config.start_hidden_bytes = config.context_hidden_bytes = 0;
    config.hides_processes = config_says("SIMGPU_HIDE_PROCESSES", "1");
    config.hides_figures = config_says("SIMGPU_HIDE_FIGURES", "1");
    config.is_mig = config_says("SIMGPU_MIG", "1");
    config.loads_eagerly = config_says("CUDA_MODULE_LOADING", "EAGER");
    return config;
}

void config_state_path(char *path, unsigned path_bytes)
{
    const char *asked = getenv("SIMGPU_STATE");

    if (asked && *asked)
        snprintf(path, path_bytes, "%s", asked);
    else
        snprintf(path, path_bytes, "%s/simgpu-%u", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
                 (unsigned)geteuid());
}
