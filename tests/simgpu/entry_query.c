// SPDX-License-Identifier: MIT
//
// What programs ask about memory: how much there is, and what lies at an address.

#include "backing.h"
#include "context.h"
#include "memory.h"
#include "pool.h"
#include "process.h"
#include "vmm.h"

static CUresult query_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    *free_bytes = backing_free_bytes(context->gpu);
    *total_bytes = process.config.memory_bytes;
    return CUDA_SUCCESS;
}

static unsigned query_clamp(uint64_t value)
{
    return value < UINT32_MAX ? (unsigned)value : UINT32_MAX;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    CUresult result = process_enter(SYMBOL_cuMemGetInfo, PROCESS_SAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(query_info(&free_bytes, &total_bytes));
    if (free)
        *free = query_clamp(free_bytes);
    if (total)
        *total = query_clamp(total_bytes);
    return result;
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    CUresult result = process_enter(SYMBOL_cuMemGetInfo_v2, PROCESS_SAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(query_info(&free_bytes, &total_bytes));
    if (free)
        *free = free_bytes;
    if (total)
        *total = total_bytes;
    return result;
}

static CUresult query_total(CUdevice dev, bool has_output, uint64_t *bytes)
{
    unsigned gpu;

    if (!has_output)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process_find_gpu(dev, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = process.config.memory_bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    uint64_t total = 0;
    CUresult result = process_enter(SYMBOL_cuDeviceTotalMem, PROCESS_SAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(query_total(dev, bytes != NULL, &total));
    if (bytes)
        *bytes = query_clamp(total);
    return result;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    uint64_t total = 0;
    CUresult result = process_enter(SYMBOL_cuDeviceTotalMem_v2, PROCESS_SAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(query_total(dev, bytes != NULL, &total));
    if (bytes)
        *bytes = total;
    return result;
}

/* ---- what lies at an address ---- */

static const struct range *query_range(uint64_t address)
{
    const struct memory *memory = memory_find(address);
    const struct vmm_mapping *mapping = vmm_find_mapping(address);

    if (memory)
        return &memory->range;
    return mapping && mapping->has_access ? &mapping->range : NULL;
}

/* 500 comes with zeros. */
static CUresult query_address(uint64_t address, uint64_t *base, uint64_t *bytes)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    const struct range *range = query_range(address);
    *base = range ? range->start : 0;
    *bytes = range ? range->end - range->start : 0;
    return range ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize,
                                      CUdeviceptr_v1 dptr)
{
    CUresult result = process_enter(SYMBOL_cuMemGetAddressRange, PROCESS_SAFE);
    uint64_t base, bytes;

    if (result)
        return result;
    result = query_address(dptr, &base, &bytes);
    bool told = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND;
    if (told && pbase)
        *pbase = (CUdeviceptr_v1)base;
    if (told && psize)
        *psize = query_clamp(bytes);
    return process_leave(result);
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    CUresult result = process_enter(SYMBOL_cuMemGetAddressRange_v2, PROCESS_SAFE);
    uint64_t base, bytes;

    if (result)
        return result;
    result = query_address(dptr, &base, &bytes);
    bool told = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND;
    if (told && pbase)
        *pbase = base;
    if (told && psize)
        *psize = bytes;
    return process_leave(result);
}

static CUresult query_attribute(void *data, CUpointer_attribute attribute,
                                const struct memory *memory, const struct vmm_mapping *mapping)
{
    const struct range *range = memory ? &memory->range : &mapping->range;
    bool host = memory && memory->kind == MEMORY_HOST;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = memory ? memory->context : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = range->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data =
            memory && (memory->kind == MEMORY_MANAGED ||
                       (memory->pool && memory->pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = memory ? memory->ordinal : mapping->handle->physical->prop.location.id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = range->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = range->end - range->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = memory ? memory->pool : NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = process_enter(SYMBOL_cuPointerGetAttribute, PROCESS_SAFE);

    if (result)
        return result;
    const struct memory *memory = memory_find(ptr);
    const struct vmm_mapping *mapping = vmm_find_mapping(ptr);
    if (!data || (!memory && !mapping))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
        *(CUdeviceptr *)data = ptr;
    else if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && memory &&
             memory->kind == MEMORY_HOST)
        *(void **)data = (void *)(uintptr_t)ptr;
    else
        result = query_attribute(data, attribute, memory, mapping);
    return process_leave(result);
}
