/* SPDX-License-Identifier: MIT
 *
 * The questions of nvml_ask.h.
 */
#include "nvml_ask.h"

#include <stdio.h>

static bool is_consistent(const nvmlMemory_t *first, const nvmlMemory_v2_t *second)
{
    return first->total == second->total && first->free == second->free &&
           first->used == first->total - first->free && second->used == first->used &&
           second->total == second->reserved + second->free + second->used;
}

bool nvml_ask(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
    return nvmlDeviceGetMemoryInfo(device, memory) == NVML_SUCCESS &&
           nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_SUCCESS &&
           second.version == NVML_MEMORY_V2 && is_consistent(memory, &second);
}

bool nvml_agrees(nvmlDevice_t device)
{
    nvmlMemory_t memory;
    size_t free_bytes, total;
    return cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && nvml_ask(device, &memory) &&
           memory.total == total && memory.free == free_bytes;
}

nvmlDevice_t nvml_device(unsigned index)
{
    nvmlDevice_t device = NULL;
    if (nvmlDeviceGetHandleByIndex_v2(index, &device) != NVML_SUCCESS)
        fprintf(stderr, "NVML has no device %u\n", index);
    return device;
}

nvmlDevice_t nvml_device_of(CUdevice ordinal)
{
    char bus[32];
    nvmlDevice_t device = NULL;
    if (cuDeviceGetPCIBusId(bus, sizeof bus, ordinal) != CUDA_SUCCESS ||
        nvmlDeviceGetHandleByPciBusId_v2(bus, &device) != NVML_SUCCESS)
        fprintf(stderr, "NVML does not know CUDA's device %d\n", ordinal);
    return device;
}
