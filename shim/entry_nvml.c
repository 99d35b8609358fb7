/* SPDX-License-Identifier: MIT
 *
 * How much memory NVML says there is: its own answer, cut to the same limit as cuMemGetInfo's. Its
 * errors, and what it does with null pointers and other versions, stay as they are.
 *
 * A program may ask NVML before CUDA, or without it (nvidia-smi, pynvml). Then nothing begins here:
 * no ledger, no message; the figures are cut to what the limit is going to be.
 */
#include "driver.h"
#include "entry.h"
#include "limit.h"
#include "start.h"
#include "truth.h"
#include "visible.h"

#include <stdlib.h>

static bool entry_nvml_enter(void)
{
    (void)real_nvml_ready(); /* a program linked with NVML has never looked us up */
    return guard_enter();
}

static bool entry_nvml_uuid(nvmlDevice_t device, char uuid[VISIBLE_UUID_BYTES])
{
    char text[NVML_UUID_BYTES] = "";
    return real.nvmlDeviceGetUUID(device, text, sizeof text) == NVML_SUCCESS &&
           visible_uuid(text, uuid);
}

/* The ordinal that CUDA will give a device, or -1 if it will hide it. */
static int entry_nvml_foresee(const char *uuid)
{
    struct visible_gpus gpus = {.count = 0};
    unsigned count = 0;
    real.nvmlDeviceGetCount_v2(&count);
    for (unsigned index = 0; index < count && gpus.count < VISIBLE_GPUS; index++) {
        nvmlDevice_t device;
        /* One that this process may not use, as in a container, has no place in CUDA's order. */
        if (real.nvmlDeviceGetHandleByIndex_v2(index, &device) == NVML_SUCCESS &&
            entry_nvml_uuid(device, gpus.uuids[gpus.count]))
            gpus.count++;
    }
    return visible_ordinal(getenv("CUDA_VISIBLE_DEVICES"), &gpus, uuid);
}

/* Cuts the figures of a device that this process has not used yet. */
static void entry_nvml_cut(const char *uuid, uint64_t *total, uint64_t *free)
{
    const struct config *config = config_get();
    uint64_t card_bytes = *total;
    size_t cuda_bytes;
    int ordinal;
    if (config->rules_count == 0)
        return;
    if (!real_ready() || !driver_find_uuid(uuid, &ordinal))
        ordinal = entry_nvml_foresee(uuid);
    else if (ordinal >= 0 && real.cuDeviceTotalMem_v2(&cuda_bytes, ordinal) == CUDA_SUCCESS)
        card_bytes = cuda_bytes; /* of which a limit in percent will be */
    if (ordinal < 0)
        return; /* hidden from CUDA, so no business of the limit */
    uint64_t limit = config_limit_for(config, (unsigned)ordinal, uuid, card_bytes);
    if (*total > limit)
        *total = limit;
    if (*free > limit)
        *free = limit;
}

/* Looks as cuMemGetInfo does: both are to say the same. Where that could not be asked, for want of
 * a context, nobody else may have looked for long. */
static void entry_nvml_look(unsigned device)
{
    CUdevice current;
    driver_look(device);
    if (real.cuCtxGetDevice(&current) == CUDA_SUCCESS && (unsigned)current == device)
        truth_look_late();
    else
        truth_look(device);
}

/* Cuts the figures of a device as limit_view does those of cuMemGetInfo. */
static void entry_nvml_view(nvmlDevice_t device, uint64_t *total, uint64_t *free)
{
    const struct config *config = config_get();
    char uuid[VISIBLE_UUID_BYTES];
    unsigned ordinal;
    if (config->nvml_is_real || config->error.length > 0 || !entry_nvml_uuid(device, uuid))
        return;
    if (!start_find_device(uuid, &ordinal)) {
        entry_nvml_cut(uuid, total, free);
        return;
    }
    entry_nvml_look(ordinal);
    limit_view(ordinal, total, free);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    if (!entry_nvml_enter())
        return real.nvmlDeviceGetMemoryInfo(device, memory);
    nvmlReturn_t result = real.nvmlDeviceGetMemoryInfo(device, memory);
    if (result == NVML_SUCCESS && memory) {
        uint64_t total = memory->total, left = memory->free;
        entry_nvml_view(device, &total, &left);
        if (total != memory->total || left != memory->free)
            *memory = (nvmlMemory_t){.total = total, .free = left, .used = total - left};
    }
    guard_leave();
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (!entry_nvml_enter())
        return real.nvmlDeviceGetMemoryInfo_v2(device, memory);
    nvmlReturn_t result = real.nvmlDeviceGetMemoryInfo_v2(device, memory);
    if (result == NVML_SUCCESS && memory) {
        uint64_t total = memory->total, left = memory->free;
        entry_nvml_view(device, &total, &left);
        /* What the card keeps for itself is no part of a limit below the card's size: used is to be
         * what is charged, as in the first version. */
        if (total < memory->total)
            memory->reserved = 0;
        if (total != memory->total || left != memory->free)
            memory->used = total - left - memory->reserved;
        memory->total = total;
        memory->free = left;
    }
    guard_leave();
    return result;
}

/* Of a MIG instance. Whole cards have no such attributes, or none that a limit is about. */
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    unsigned is_mig = 0;
    if (!entry_nvml_enter())
        return real.nvmlDeviceGetAttributes_v2(device, attributes);
    nvmlReturn_t result = real.nvmlDeviceGetAttributes_v2(device, attributes);
    if (result == NVML_SUCCESS && attributes &&
        real.nvmlDeviceIsMigDeviceHandle(device, &is_mig) == NVML_SUCCESS && is_mig) {
        uint64_t total = attributes->memorySizeMB << 20, left = total;
        entry_nvml_view(device, &total, &left);
        attributes->memorySizeMB = total >> 20;
    }
    guard_leave();
    return result;
}
