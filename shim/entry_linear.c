/* SPDX-License-Identifier: MIT
 *
 * Linear and managed memory: cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged, and cuMemFree, which
 * frees stream-ordered memory as well. On failure the driver sets the pointer to 0 (and the pitch
 * to the pitch), so a refusal does too. The functions without _v2 are those of CUDA 2.x, with
 * 32-bit addresses.
 */
#include "driver.h"
#include "entry.h"
#include "limit.h"

/* The pitch is known only after the call. On current GPUs it is a multiple of 512. */
static size_t entry_guess_pitch(size_t width)
{
    return width > SIZE_MAX - 511 ? SIZE_MAX : (width + 511) / 512 * 512;
}

/* Rows times pitch; SIZE_MAX if that is more than there can be. */
static size_t entry_area(size_t pitch, size_t height)
{
    size_t bytes;
    return __builtin_mul_overflow(pitch, height, &bytes) ? SIZE_MAX : bytes;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct driver_place place;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAlloc_v2(dptr, bytesize);
    if (!dptr || bytesize == 0 || !driver_here(&place))
        return entry_pass(real.cuMemAlloc_v2(dptr, bytesize));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, place.device, (uint64_t)place.context,
                       API_cuMemAlloc_v2, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuMemAlloc_v2(dptr, bytesize);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        real.cuMemFree_v2(*dptr);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    struct driver_place place;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAlloc(dptr, bytesize);
    if (!dptr || bytesize == 0 || !driver_here(&place))
        return entry_pass(real.cuMemAlloc(dptr, bytesize));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, place.device, (uint64_t)place.context,
                       API_cuMemAlloc, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuMemAlloc(dptr, bytesize);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        real.cuMemFree(*dptr);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                    size_t Height, unsigned int ElementSizeBytes)
{
    struct driver_place place;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0 || !driver_here(&place))
        return entry_pass(
            real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
    size_t pitch = entry_guess_pitch(WidthInBytes);
    if (!limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, place.device, (uint64_t)place.context,
                       API_cuMemAllocPitch_v2, entry_area(pitch, Height))) {
        *dptr = 0;
        *pPitch = pitch;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, entry_area(*pPitch, Height))) {
        real.cuMemFree_v2(*dptr);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
                                 unsigned int WidthInBytes, unsigned int Height,
                                 unsigned int ElementSizeBytes)
{
    struct driver_place place;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0 || !driver_here(&place))
        return entry_pass(
            real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
    size_t pitch = entry_guess_pitch(WidthInBytes);
    if (!limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, place.device, (uint64_t)place.context,
                       API_cuMemAllocPitch, entry_area(pitch, Height))) {
        *dptr = 0;
        *pPitch = (unsigned int)pitch;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, entry_area(*pPitch, Height))) {
        real.cuMemFree(*dptr);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct driver_place place;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocManaged(dptr, bytesize, flags);
    if (!dptr || bytesize == 0 || !driver_here(&place))
        return entry_pass(real.cuMemAllocManaged(dptr, bytesize, flags));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_MANAGED, place.device, (uint64_t)place.context,
                       API_cuMemAllocManaged, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuMemAllocManaged(dptr, bytesize, flags);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        real.cuMemFree_v2(*dptr);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuMemFree_v2(dptr);
    limit_detach(&removal, dptr);
    CUresult result = real.cuMemFree_v2(dptr);
    if (result == CUDA_SUCCESS)
        limit_release(&removal);
    else
        limit_restore(&removal);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuMemFree(dptr);
    limit_detach(&removal, dptr);
    CUresult result = real.cuMemFree(dptr);
    if (result == CUDA_SUCCESS)
        limit_release(&removal);
    else
        limit_restore(&removal);
    guard_leave();
    return result;
}
