// SPDX-License-Identifier: MIT
//
// Memory into arrays that have none of their own. Which boxes begin and end where tiles do is not
// looked at.

#include "array.h"
#include "process.h"

#define TILE_BYTES 65536u

/* What an operation is about. */
struct tile_target {
    struct tile_list *tiles;
    const CUDA_ARRAY3D_DESCRIPTOR *desc;
    unsigned levels;
};

static CUresult tile_find_target(const CUarrayMapInfo *info, struct tile_target *target)
{
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        CUarray array = info->resource.array;

        if (!handle_is(array, HANDLE_ARRAY))
            return CUDA_ERROR_INVALID_HANDLE;
        *target = (struct tile_target){&array->place.tiles, &array->desc, 1};
        return array->is_view ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    if (info->resourceType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray mipmap = info->resource.mipmap;
    if (!handle_is(mipmap, HANDLE_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    *target = (struct tile_target){&mipmap->place.tiles, &mipmap->desc, mipmap->levels};
    return CUDA_SUCCESS;
}

static bool tile_is_inside(const CUarrayMapInfo *info, const struct tile_target *target)
{
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
        return info->subresource.miptail.size && info->subresource.miptail.offset % TILE_BYTES == 0;
    if (info->subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL ||
        info->subresource.sparseLevel.level >= target->levels)
        return false;
    CUDA_ARRAY3D_DESCRIPTOR desc = shape_level(target->desc, info->subresource.sparseLevel.level);
    return info->subresource.sparseLevel.extentWidth &&
           info->subresource.sparseLevel.extentHeight &&
           info->subresource.sparseLevel.extentDepth &&
           info->subresource.sparseLevel.offsetX < desc.Width &&
           info->subresource.sparseLevel.offsetY < desc.Height;
}

static CUresult tile_check(const CUarrayMapInfo *info, CUcontext context,
                           struct tile_target *target)
{
    CUresult result = tile_find_target(info, target);

    if (result)
        return result;
    if (!(target->desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) ||
        info->flags || info->reserved[0] || info->reserved[1] ||
        info->deviceBitMask != 1u << context->ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(target->desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) && !tile_is_inside(info, target))
        return CUDA_ERROR_INVALID_VALUE;
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return info->memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    const struct vmm_handle *handle = vmm_find_handle(info->memHandle.memHandle);
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP ||
        info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || !handle ||
        !(handle->physical->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) ||
        handle->physical->gpu != context->gpu || info->offset % TILE_BYTES ||
        info->offset >= handle->physical->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* All are looked at before any is done. */
static CUresult tile_do(const CUarrayMapInfo *infos, unsigned count, CUstream handle,
                        bool per_thread)
{
    struct tile_target target;
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (!result && !infos)
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !result && i < count; i++)
        result = tile_check(&infos[i], stream->context, &target);
    for (unsigned i = 0; !result && i < count; i++) {
        CUarrayMapInfo info = infos[i];

        (void)tile_find_target(&info, &target);
        if (target.desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) {
            info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
            info.subresource.miptail.layer = 0;
            info.subresource.miptail.offset = info.subresource.miptail.size = 0;
        }
        if (info.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
            tiles_unmap(target.tiles, &info);
        else
            result = tiles_map(target.tiles, &info, vmm_find_handle(info.memHandle.memHandle));
    }
    return result;
}

CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count,
                                    CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuMemMapArrayAsync, PROCESS_UNSAFE);

    return result ? result : process_leave(tile_do(mapInfoList, count, hStream, false));
}

CUresult CUDAAPI cuMemMapArrayAsync_ptsz(CUarrayMapInfo *mapInfoList, unsigned int count,
                                         CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuMemMapArrayAsync_ptsz, PROCESS_UNSAFE);

    return result ? result : process_leave(tile_do(mapInfoList, count, hStream, true));
}
