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

static uint64_t config_number(const char *variable, uint64_t fallback, uint64_t most)
{
    const char *text = getenv(variable);
    char *end;

    if (!text || *text < '0' || *text > '9')
        return fallback;
    uint64_t value = strtoull(text, &end, 10);
    if (*end || !value)
        return fallback;
    return value < most ? value : most;
}

struct config config_read(void)
{
    const char *profile = getenv("SIMGPU_PROFILE");
    uint64_t memory_mb = 8192, context_mb = 64;
    struct config config = {.device_name = "Simulated GPU"};

    if (profile && strcmp(profile, "h200") == 0) {
        memory_mb = 143771;
        context_mb = 518;
        config.device_name = "NVIDIA H200";
        config.is_h200 = true;
    }
    config.devices = (unsigned)config_number("SIMGPU_DEVICES", 1, CONFIG_DEVICES_MAX);
    config.memory_bytes = config_number("SIMGPU_MEMORY_MB", memory_mb, UINT32_MAX) * MIB;
    config.context_bytes = config_number("SIMGPU_CONTEXT_MB", context_mb, UINT32_MAX) * MIB;
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
