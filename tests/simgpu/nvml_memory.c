// SPDX-License-Identifier: MIT
//
// NVML's figures: a device's memory and what each process with a context holds of it, as far as
// NVML counts it for one. What the card keeps for itself is told by
// NVML alone.

#include "nvml.h"
#include "state.h"

#define NVML_NO_INSTANCE  0xffffffffu /* no MIG */
#define NVML_MIG_INSTANCE 1u          /* of each device, which is then the only part of its own */
#define NVML_PROCESSES    256u

static unsigned long long nvml_used(const struct nvml_device *device)
{
    uint64_t used = state_used_bytes(device->gpu);

    return used < nvml_config.memory_bytes ? used : nvml_config.memory_bytes;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!memory)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    memory->total = nvml_config.memory_bytes + nvml_config.reserved_bytes;
    memory->used = nvml_used(device) + nvml_config.reserved_bytes;
    memory->free = memory->total - memory->used;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!memory)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    if (memory->version != NVML_MEMORY_V2)
        return nvml_leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    memory->total = nvml_config.memory_bytes + nvml_config.reserved_bytes;
    memory->reserved = nvml_config.reserved_bytes;
    memory->used = nvml_used(device);
    memory->free = nvml_config.memory_bytes - memory->used;
    return nvml_leave(NVML_SUCCESS);
}

/* Writes the list only if all of it fits into *count records. */
static nvmlReturn_t nvml_list(const struct nvml_device *device, unsigned *count, const void *infos,
                              struct state_process *processes)
{
    if (!count || (*count && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = nvml_config.hides_processes ? 0 : state_list(device->gpu, processes, NVML_PROCESSES);
    for (unsigned i = 0; nvml_config.hides_figures && i < *count; i++)
        processes[i].used_bytes = UINT64_MAX;
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                  nvmlProcessInfo_v1_t *infos)
{
    nvmlReturn_t result = nvml_enter_device(device);
    struct state_process processes[NVML_PROCESSES];

    if (result)
        return result;
    result = nvml_list(device, count, infos, processes);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){(unsigned)processes[i].pid, processes[i].used_bytes};
    return nvml_leave(result);
}

static nvmlReturn_t nvml_list_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    nvmlReturn_t result = nvml_enter_device(device);
    struct state_process processes[NVML_PROCESSES];

    if (result)
        return result;
    result = nvml_list(device, count, infos, processes);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] =
            (nvmlProcessInfo_v2_t){(unsigned)processes[i].pid, processes[i].used_bytes,
                                   nvml_config.is_mig ? NVML_MIG_INSTANCE : NVML_NO_INSTANCE,
                                   nvml_config.is_mig ? NVML_MIG_INSTANCE : NVML_NO_INSTANCE};
    return nvml_leave(result);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    return nvml_list_v2(device, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    return nvml_list_v2(device, count, infos);
}
