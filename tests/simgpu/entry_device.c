// SPDX-License-Identifier: MIT
//
// Devices: which there are and what they are called.

#include "device.h"
#include "process.h"

#include <stdio.h>
#include <string.h>

static CUresult device_check(CUdevice dev, unsigned *gpu, const void *output)
{
    if (!output)
        return CUDA_ERROR_INVALID_VALUE;
    return process_find_gpu(dev, gpu) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGet, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    result = device_check(ordinal, &gpu, device);
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return process_leave(result);
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetCount, PROCESS_SAFE);

    if (result)
        return result;
    if (!count)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *count = (int)process.visible;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetName, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    result = len > 0 ? device_check(dev, &gpu, name) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(name, (size_t)len, "%s", process.config.device_name);
    return process_leave(result);
}

static CUresult device_fill(CUdevice dev, CUuuid *uuid)
{
    unsigned gpu;
    CUresult result = device_check(dev, &gpu, uuid);
    unsigned char bytes[16];

    if (result)
        return result;
    device_fill_uuid(gpu, bytes);
    memcpy(uuid->bytes, bytes, sizeof bytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetUuid, PROCESS_SAFE);

    return result ? result : process_leave(device_fill(dev, uuid));
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetUuid_v2, PROCESS_SAFE);

    return result ? result : process_leave(device_fill(dev, uuid));
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetPCIBusId, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    result = len > 0 ? device_check(dev, &gpu, pciBusId) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", device_pci_bus(gpu));
    return process_leave(result);
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetByPCIBusId, PROCESS_SAFE);

    if (result)
        return result;
    if (!dev || !pciBusId)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    int gpu = device_find_pci(process.config.devices, pciBusId);
    for (unsigned i = 0; i < process.visible; i++)
        if (gpu >= 0 && process.gpus[i] == (unsigned)gpu) {
            *dev = (CUdevice)i;
            return process_leave(CUDA_SUCCESS);
        }
    return process_leave(CUDA_ERROR_INVALID_DEVICE);
}

/* An H200's answers, as far as programs ask before they do anything. Others are 0. */
static int device_attribute(unsigned gpu, int attribute)
{
    static const struct {
        int attribute;
        int value;
    } values[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, DRIVER_MULTIPROCESSORS},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6016},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, DRIVER_THREADS},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1},
    };

    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        return (int)device_pci_bus(gpu);
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i].attribute == attribute)
            return values[i].value;
    return 0;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetAttribute, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    result = device_check(dev, &gpu, pi);
    if (result == CUDA_SUCCESS && (attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pi = device_attribute(gpu, (int)attrib);
    return process_leave(result);
}
