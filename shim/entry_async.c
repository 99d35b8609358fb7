/* SPDX-License-Identifier: MIT
 *
 * Stream-ordered memory: cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync. The pool is
 * charged, by its reserve, so after the driver's call it is read and the reading goes with the
 * ticket. On a capturing stream the driver makes a graph node, which takes nothing now. _ptsz:
 * stream 0 is the thread's own.
 */
#include "driver.h"
#include "entry.h"
#include "limit_later.h"

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUmemoryPool pool;
    unsigned device;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocAsync(dptr, bytesize, hStream);
    if (!dptr || bytesize == 0 || !driver_stream_pool(hStream, false, &pool, &device))
        return entry_pass(real.cuMemAllocAsync(dptr, bytesize, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, device, (uint64_t)pool, API_cuMemAllocAsync,
                       bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    ticket.stream = driver_stream(hStream, false);
    CUresult result = real.cuMemAllocAsync(dptr, bytesize, hStream);
    driver_read_pool(pool, &ticket.reading);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        driver_return_to_pool(*dptr, pool);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUmemoryPool pool;
    unsigned device;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocAsync_ptsz(dptr, bytesize, hStream);
    if (!dptr || bytesize == 0 || !driver_stream_pool(hStream, true, &pool, &device))
        return entry_pass(real.cuMemAllocAsync_ptsz(dptr, bytesize, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, device, (uint64_t)pool,
                       API_cuMemAllocAsync_ptsz, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    ticket.stream = driver_stream(hStream, true);
    CUresult result = real.cuMemAllocAsync_ptsz(dptr, bytesize, hStream);
    driver_read_pool(pool, &ticket.reading);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        driver_return_to_pool(*dptr, pool);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    unsigned device;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
    if (!dptr || bytesize == 0 || !pool || !driver_pool_place(pool, hStream, false, &device))
        return entry_pass(real.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, device, (uint64_t)pool,
                       API_cuMemAllocFromPoolAsync, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    ticket.stream = driver_stream(hStream, false);
    CUresult result = real.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
    driver_read_pool(pool, &ticket.reading);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        driver_return_to_pool(*dptr, pool);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                              CUstream hStream)
{
    unsigned device;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
    if (!dptr || bytesize == 0 || !pool || !driver_pool_place(pool, hStream, true, &device))
        return entry_pass(real.cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, device, (uint64_t)pool,
                       API_cuMemAllocFromPoolAsync_ptsz, bytesize)) {
        *dptr = 0;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    ticket.stream = driver_stream(hStream, true);
    CUresult result = real.cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
    driver_read_pool(pool, &ticket.reading);
    if (result != CUDA_SUCCESS) {
        entry_cancel(&ticket, result);
    } else if (!limit_commit(&ticket, *dptr, bytesize)) {
        driver_return_to_pool(*dptr, pool);
        limit_give_up(&ticket);
        *dptr = 0;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuMemFreeAsync(dptr, hStream);
    limit_detach(&removal, dptr);
    CUresult result = real.cuMemFreeAsync(dptr, hStream);
    if (result == CUDA_SUCCESS)
        limit_release_later(&removal, driver_stream(hStream, false));
    else
        limit_restore(&removal);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    struct removal removal;
    if (!entry_enter())
        return real.cuMemFreeAsync_ptsz(dptr, hStream);
    limit_detach(&removal, dptr);
    CUresult result = real.cuMemFreeAsync_ptsz(dptr, hStream);
    if (result == CUDA_SUCCESS)
        limit_release_later(&removal, driver_stream(hStream, true));
    else
        limit_restore(&removal);
    guard_leave();
    return result;
}
