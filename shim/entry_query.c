/* SPDX-License-Identifier: MIT
 *
 * How much memory there is: the driver's answer, cut to the limit and to what remains of it. The
 * driver's errors, and what it does with null pointers, stay as they are.
 */
#include "driver.h"
#include "entry.h"
#include "limit.h"

/* Cuts the figures of the current context's device. */
static void entry_view_here(uint64_t *total, uint64_t *free)
{
    struct driver_place place;
    if (!driver_here(&place))
        return;
    driver_look(place.device);
    truth_look_late();
    limit_view(place.device, total, free);
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total)
{
    if (!entry_enter())
        return real.cuMemGetInfo_v2(free, total);
    CUresult result = real.cuMemGetInfo_v2(free, total);
    if (result == CUDA_SUCCESS) {
        uint64_t left = free ? *free : UINT64_MAX, all = total ? *total : UINT64_MAX;
        entry_view_here(&all, &left);
        if (free)
            *free = left;
        if (total)
            *total = all;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    if (!entry_enter())
        return real.cuMemGetInfo(free, total);
    CUresult result = real.cuMemGetInfo(free, total);
    if (result == CUDA_SUCCESS) {
        uint64_t left = free ? *free : UINT64_MAX, all = total ? *total : UINT64_MAX;
        entry_view_here(&all, &left);
        if (free)
            *free = (unsigned int)left;
        if (total)
            *total = (unsigned int)all;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    if (!entry_enter())
        return real.cuDeviceTotalMem_v2(bytes, dev);
    CUresult result = real.cuDeviceTotalMem_v2(bytes, dev);
    if (result == CUDA_SUCCESS && bytes && driver_knows(dev)) {
        uint64_t left = 0;
        limit_view((unsigned)dev, bytes, &left);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    if (!entry_enter())
        return real.cuDeviceTotalMem(bytes, dev);
    CUresult result = real.cuDeviceTotalMem(bytes, dev);
    if (result == CUDA_SUCCESS && bytes && driver_knows(dev)) {
        uint64_t all = *bytes, left = 0;
        limit_view((unsigned)dev, &all, &left);
        *bytes = (unsigned int)all;
    }
    guard_leave();
    return result;
}
