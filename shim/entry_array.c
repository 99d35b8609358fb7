/* SPDX-License-Identifier: MIT
 *
 * CUDA arrays, plain and mipmapped. On failure the driver leaves the handle untouched, so a refusal
 * does too. Levels and planes are views: they are in no ledger, and destroying one frees nothing.
 * The functions without _v2 are those of CUDA 2.x, with 32-bit extents.
 */
#include "driver.h"
#include "entry.h"
#include "limit_contexts.h"
#include "limit_tiles.h"

static CUDA_ARRAY3D_DESCRIPTOR entry_widen(const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = descriptor->Width,
                                     .Height = descriptor->Height,
                                     .Depth = descriptor->Depth,
                                     .Format = descriptor->Format,
                                     .NumChannels = descriptor->NumChannels,
                                     .Flags = descriptor->Flags};
}

static CUDA_ARRAY3D_DESCRIPTOR entry_widen_2d(const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = descriptor->Width,
                                     .Height = descriptor->Height,
                                     .Format = descriptor->Format,
                                     .NumChannels = descriptor->NumChannels};
}

static CUDA_ARRAY3D_DESCRIPTOR entry_widen_2d_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = descriptor->Width,
                                     .Height = descriptor->Height,
                                     .Format = descriptor->Format,
                                     .NumChannels = descriptor->NumChannels};
}

/* The driver has answered for an array that takes no memory: it can be given some. */
static CUresult entry_note_empty(CUresult result, const void *handle, unsigned flags,
                                 const struct driver_place *place)
{
    if (result == CUDA_SUCCESS && (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
        limit_array_created((uint64_t)handle, place->device, (uint64_t)place->context,
                            flags & CUDA_ARRAY3D_DEFERRED_MAPPING);
    return entry_pass(result);
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct driver_place place;
    struct ticket ticket;
    uint64_t bytes;
    if (!entry_enter())
        return real.cuArray3DCreate_v2(pHandle, pAllocateArray);
    if (!pHandle || !pAllocateArray || !driver_here(&place))
        return entry_pass(real.cuArray3DCreate_v2(pHandle, pAllocateArray));
    CUDA_ARRAY3D_DESCRIPTOR descriptor = *pAllocateArray;
    if (!driver_array_bytes(&descriptor, 0, &bytes)) {
        CUresult made = real.cuArray3DCreate_v2(pHandle, pAllocateArray);
        return entry_note_empty(made, *pHandle, descriptor.Flags, &place);
    }
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ARRAY, place.device, (uint64_t)place.context,
                       API_cuArray3DCreate_v2, bytes))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUarray created = NULL;
    CUresult result = real.cuArray3DCreate_v2(&created, pAllocateArray);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, (uint64_t)created, bytes)) {
        real.cuArrayDestroy(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *pHandle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    struct driver_place place;
    struct ticket ticket;
    uint64_t bytes;
    if (!entry_enter())
        return real.cuArray3DCreate(pHandle, pAllocateArray);
    if (!pHandle || !pAllocateArray || !driver_here(&place))
        return entry_pass(real.cuArray3DCreate(pHandle, pAllocateArray));
    CUDA_ARRAY3D_DESCRIPTOR descriptor = entry_widen(pAllocateArray);
    if (!driver_array_bytes(&descriptor, 0, &bytes)) {
        CUresult made = real.cuArray3DCreate(pHandle, pAllocateArray);
        return entry_note_empty(made, *pHandle, descriptor.Flags, &place);
    }
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ARRAY, place.device, (uint64_t)place.context,
                       API_cuArray3DCreate, bytes))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUarray created = NULL;
    CUresult result = real.cuArray3DCreate(&created, pAllocateArray);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, (uint64_t)created, bytes)) {
        real.cuArrayDestroy(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *pHandle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    struct driver_place place;
    struct ticket ticket;
    uint64_t bytes;
    if (!entry_enter())
        return real.cuArrayCreate_v2(pHandle, pAllocateArray);
    if (!pHandle || !pAllocateArray || !driver_here(&place))
        return entry_pass(real.cuArrayCreate_v2(pHandle, pAllocateArray));
    CUDA_ARRAY3D_DESCRIPTOR descriptor = entry_widen_2d(pAllocateArray);
    if (!driver_array_bytes(&descriptor, 0, &bytes))
        return entry_pass(real.cuArrayCreate_v2(pHandle, pAllocateArray));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ARRAY, place.device, (uint64_t)place.context,
                       API_cuArrayCreate_v2, bytes))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUarray created = NULL;
    CUresult result = real.cuArrayCreate_v2(&created, pAllocateArray);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, (uint64_t)created, bytes)) {
        real.cuArrayDestroy(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *pHandle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    struct driver_place place;
    struct ticket ticket;
    uint64_t bytes;
    if (!entry_enter())
        return real.cuArrayCreate(pHandle, pAllocateArray);
    if (!pHandle || !pAllocateArray || !driver_here(&place))
        return entry_pass(real.cuArrayCreate(pHandle, pAllocateArray));
    CUDA_ARRAY3D_DESCRIPTOR descriptor = entry_widen_2d_v1(pAllocateArray);
    if (!driver_array_bytes(&descriptor, 0, &bytes))
        return entry_pass(real.cuArrayCreate(pHandle, pAllocateArray));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ARRAY, place.device, (uint64_t)place.context,
                       API_cuArrayCreate, bytes))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUarray created = NULL;
    CUresult result = real.cuArrayCreate(&created, pAllocateArray);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, (uint64_t)created, bytes)) {
        real.cuArrayDestroy(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *pHandle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                        const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    struct driver_place place;
    struct ticket ticket;
    uint64_t bytes;
    if (!entry_enter())
        return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
    if (!pHandle || !pMipmappedArrayDesc || numMipmapLevels == 0 || !driver_here(&place))
        return entry_pass(
            real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels));
    if (!driver_array_bytes(pMipmappedArrayDesc, numMipmapLevels, &bytes)) {
        CUresult made = real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
        return entry_note_empty(made, *pHandle, pMipmappedArrayDesc->Flags, &place);
    }
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ARRAY, place.device, (uint64_t)place.context,
                       API_cuMipmappedArrayCreate, bytes))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmipmappedArray created = NULL;
    CUresult result = real.cuMipmappedArrayCreate(&created, pMipmappedArrayDesc, numMipmapLevels);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, (uint64_t)created, bytes)) {
        real.cuMipmappedArrayDestroy(created);
        limit_give_up(&ticket);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *pHandle = created;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuArrayDestroy(hArray);
    limit_detach(&removal, (uint64_t)hArray);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuArrayDestroy(hArray);
    if (result == CUDA_SUCCESS) {
        limit_release(&removal);
        limit_array_destroyed((uint64_t)hArray, mark);
    } else {
        limit_restore(&removal);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuMipmappedArrayDestroy(hMipmappedArray);
    limit_detach(&removal, (uint64_t)hMipmappedArray);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuMipmappedArrayDestroy(hMipmappedArray);
    if (result == CUDA_SUCCESS) {
        limit_release(&removal);
        limit_array_destroyed((uint64_t)hMipmappedArray, mark);
    } else {
        limit_restore(&removal);
    }
    guard_leave();
    return result;
}
