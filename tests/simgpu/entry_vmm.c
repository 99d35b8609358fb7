// SPDX-License-Identifier: MIT
//
// Virtual memory management. Needs no context, and is legal during stream capture.

#include "process.h"
#include "vmm.h"

/* ---- physical memory ---- */

static CUresult vmm_check_prop(const CUmemAllocationProp *prop, unsigned *gpu, bool *paid)
{
    *gpu = 0;
    *paid = false;
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *paid = true;
        return process_find_gpu(prop->location.id, gpu) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST: /* such memory cannot be shared */
        return prop->requestedHandleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return prop->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult vmm_take(CUmemGenericAllocationHandle *value, uint64_t bytes,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    unsigned gpu;
    bool paid;

    if (!value || flags || !bytes || bytes % DRIVER_BLOCK)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = vmm_check_prop(prop, &gpu, &paid);
    if (result)
        return result;
    vmm_collect();
    const struct vmm_handle *handle = vmm_create(prop, gpu, bytes, paid);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *value = (uintptr_t)handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemCreate, PROCESS_SAFE);

    return result ? result : process_leave(vmm_take(handle, size, prop, flags));
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = process_enter(SYMBOL_cuMemRelease, PROCESS_SAFE);

    if (result)
        return result;
    struct vmm_handle *found = vmm_find_handle(handle);
    if (!found)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    vmm_release(found);
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult result = process_enter(SYMBOL_cuMemRetainAllocationHandle, PROCESS_SAFE);

    if (result)
        return result;
    const struct vmm_mapping *mapping = vmm_find_mapping((uintptr_t)addr);
    if (!handle || !mapping)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    mapping->handle->references++;
    *handle = (uintptr_t)mapping->handle;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option)
{
    CUresult result = process_enter(SYMBOL_cuMemGetAllocationGranularity, PROCESS_SAFE);

    if (result)
        return result;
    if (!granularity || !prop || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *granularity = DRIVER_BLOCK;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                        CUmemGenericAllocationHandle handle)
{
    CUresult result = process_enter(SYMBOL_cuMemGetAllocationPropertiesFromHandle, PROCESS_SAFE);

    if (result)
        return result;
    const struct vmm_handle *found = vmm_find_handle(handle);
    if (!prop || !found)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *prop = found->physical->prop;
    return process_leave(CUDA_SUCCESS);
}

/* ---- sharing ---- */

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle,
                                              CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType,
                                              unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemExportToShareableHandle, PROCESS_SAFE);

    if (result)
        return result;
    struct vmm_handle *found = vmm_find_handle(handle);
    if (!shareableHandle || !found || flags ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(found->physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    int descriptor = vmm_export(found);
    if (descriptor < 0)
        return process_leave(CUDA_ERROR_OPERATING_SYSTEM);
    *(int *)shareableHandle = descriptor;
    return process_leave(CUDA_SUCCESS);
}

/* The new handle's value differs from the exporter's, even within one process. */
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    CUresult result = process_enter(SYMBOL_cuMemImportFromShareableHandle, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    int descriptor = (int)(intptr_t)osHandle;
    if (descriptor < 0)
        return process_leave(CUDA_ERROR_UNKNOWN);
    const struct vmm_handle *imported = vmm_import(descriptor);
    if (!imported)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *handle = (uintptr_t)imported;
    return process_leave(CUDA_SUCCESS);
}

/* ---- addresses ---- */

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                     CUdeviceptr addr, unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemAddressReserve, PROCESS_SAFE);

    if (result)
        return result;
    if (!ptr || !size || size % DRIVER_BLOCK || (alignment & (alignment - 1)) || flags)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    uint64_t start = vmm_reserve(size, alignment, addr);
    if (!start)
        return process_leave(CUDA_ERROR_OUT_OF_MEMORY);
    *ptr = start;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult result = process_enter(SYMBOL_cuMemAddressFree, PROCESS_SAFE);

    return result ? result : process_leave(vmm_unreserve(ptr, size));
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemMap, PROCESS_SAFE);

    if (result)
        return result;
    struct vmm_handle *found = vmm_find_handle(handle);
    if (!found || flags)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (offset)
        return process_leave(CUDA_ERROR_NOT_SUPPORTED);
    return process_leave(vmm_map(ptr, size, found));
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = process_enter(SYMBOL_cuMemUnmap, PROCESS_SAFE);

    return result ? result : process_leave(vmm_unmap(ptr, size));
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                                size_t count)
{
    CUresult result = process_enter(SYMBOL_cuMemSetAccess, PROCESS_SAFE);

    if (result)
        return result;
    if (!desc || !count)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(
        vmm_set_access(ptr, size, desc[count - 1].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE));
}
