/* SPDX-License-Identifier: MIT
 *
 * Virtual memory management: cuMemCreate takes memory on the device of its location, whatever is
 * current; the memory stays while a handle or a mapping to it stays. On failure the driver leaves
 * the handle untouched, so a refusal does too.
 */
#include "driver.h"
#include "entry.h"
#include "limit_exports.h"
#include "limit_tiles.h"
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
        entry_cancel(&ticket, result);
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

static struct tiles_region entry_region(const CUarrayMapInfo *info)
{
    struct tiles_region region = {.part = info->subresourceType};
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
        region.layer = info->subresource.miptail.layer;
        region.start[0] = info->subresource.miptail.offset;
        region.end[0] = region.start[0] + info->subresource.miptail.size;
        return region;
    }
    region.level = info->subresource.sparseLevel.level;
    region.layer = info->subresource.sparseLevel.layer;
    region.start[0] = info->subresource.sparseLevel.offsetX;
    region.start[1] = info->subresource.sparseLevel.offsetY;
    region.start[2] = info->subresource.sparseLevel.offsetZ;
    region.end[0] = region.start[0] + info->subresource.sparseLevel.extentWidth;
    region.end[1] = region.start[1] + info->subresource.sparseLevel.extentHeight;
    region.end[2] = region.start[2] + info->subresource.sparseLevel.extentDepth;
    return region;
}

static CUresult entry_note_in_arrays(CUresult result, const CUarrayMapInfo *infos, unsigned count,
                                     CUstream stream, bool per_thread)
{
    if (result != CUDA_SUCCESS)
        return entry_pass(result);
    struct queue queue = driver_queue(stream, per_thread);
    for (unsigned i = 0; i < count; i++) {
        const CUarrayMapInfo *info = &infos[i];
        struct tiles_region region = entry_region(info);
        uint64_t array = info->resourceType == CU_RESOURCE_TYPE_ARRAY
                             ? (uint64_t)info->resource.array
                             : (uint64_t)info->resource.mipmap;
        if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            limit_array_mapped(array, &region, &queue, info->memHandle.memHandle);
        else
            limit_array_unmapped(array, &region, &queue);
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count,
                                    CUstream hStream)
{
    if (!entry_enter())
        return real.cuMemMapArrayAsync(mapInfoList, count, hStream);
    return entry_note_in_arrays(real.cuMemMapArrayAsync(mapInfoList, count, hStream), mapInfoList,
                                count, hStream, false);
}

CUresult CUDAAPI cuMemMapArrayAsync_ptsz(CUarrayMapInfo *mapInfoList, unsigned int count,
                                         CUstream hStream)
{
    if (!entry_enter())
        return real.cuMemMapArrayAsync_ptsz(mapInfoList, count, hStream);
    return entry_note_in_arrays(real.cuMemMapArrayAsync_ptsz(mapInfoList, count, hStream),
                                mapInfoList, count, hStream, true);
}
