/* SPDX-License-Identifier: MIT
 *
 * Virtual memory management: cuMemCreate takes memory on the device of its location, whatever is
 * current; the memory stays while a handle or a mapping to it stays. On failure the driver leaves
 * the handle untouched, so a refusal does too.
 */
#include "driver.h"
#include "entry.h"
#include "limit_exports.h"
#include "limit_vmm.h"

/* The device that pays, or false: host memory, and what the driver will refuse for reasons of its
 * own. */
static bool entry_pays(const CUmemAllocationProp *prop)
{
    return prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           driver_knows(prop->location.id);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemCreate(handle, size, prop, flags);
    if (!handle || size == 0 || !entry_pays(prop))
        return entry_pass(real.cuMemCreate(handle, size, prop, flags));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_VMM, (unsigned)prop->location.id, 0, API_cuMemCreate,
                       size))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmemGenericAllocationHandle created = 0;
    CUresult result = real.cuMemCreate(&created, size, prop, flags);
    if (result != CUDA_SUCCESS) {
        limit_cancel(&ticket);
    } else if (!limit_commit(&ticket, created, size)) {
        real.cuMemRelease(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *handle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    uint32_t object;
    if (!entry_enter())
        return real.cuMemRelease(handle);
    limit_handle_detach(handle, &object);
    CUresult result = real.cuMemRelease(handle);
    if (result == CUDA_SUCCESS)
        limit_handle_release(object);
    else
        limit_handle_restore(handle, object);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    if (!entry_enter())
        return real.cuMemRetainAllocationHandle(handle, addr);
    CUresult result = real.cuMemRetainAllocationHandle(handle, addr);
    if (result == CUDA_SUCCESS)
        limit_handle_retained(*handle, (uint64_t)addr);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle,
                                              CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType,
                                              unsigned long long flags)
{
    if (!entry_enter())
        return real.cuMemExportToShareableHandle(shareableHandle, handle, handleType, flags);
    CUresult result = real.cuMemExportToShareableHandle(shareableHandle, handle, handleType, flags);
    if (result == CUDA_SUCCESS) {
        bool is_descriptor = handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        limit_handle_exported(handle, is_descriptor ? *(int *)shareableHandle : -1);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    if (!entry_enter())
        return real.cuMemImportFromShareableHandle(handle, osHandle, shHandleType);
    CUresult result = real.cuMemImportFromShareableHandle(handle, osHandle, shHandleType);
    if (result == CUDA_SUCCESS) {
        CUmemAllocationProp prop = {0};
        if (real.cuMemGetAllocationPropertiesFromHandle(&prop, *handle) == CUDA_SUCCESS &&
            entry_pays(&prop))
            limit_handle_imported(*handle, (unsigned)prop.location.id,
                                  API_cuMemImportFromShareableHandle);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    if (!entry_enter())
        return real.cuMemMap(ptr, size, offset, handle, flags);
    CUresult result = real.cuMemMap(ptr, size, offset, handle, flags);
    if (result == CUDA_SUCCESS)
        limit_mapped(handle, ptr, size);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    if (!entry_enter())
        return real.cuMemUnmap(ptr, size);
    CUresult result = real.cuMemUnmap(ptr, size);
    if (result == CUDA_SUCCESS)
        limit_unmapped(ptr, size);
    guard_leave();
    return result;
}
