// SPDX-License-Identifier: MIT
//
// Stream-ordered allocation. On a capturing stream it makes nodes of the graph and takes nothing.

#include "capture.h"
#include "context.h"
#include "graph_memory.h"
#include "import.h"
#include "linear.h"
#include "pool.h"
#include "process.h"

#define ASYNC_MAX ((uint64_t)1 << 45) /* what a node may ask for; larger than any device */

/* Calls on the capturing stream itself are legal; on any other, they are as unsafe as the rest. */
static CUresult async_find_stream(CUstream handle, bool per_thread, CUstream *stream)
{
    CUresult result = stream_find(handle, per_thread, stream);

    if (result)
        return result;
    if (capture_status(*stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!(*stream)->capture && capture_spoil())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return CUDA_SUCCESS;
}

struct async_request {
    uint64_t bytes;
    bool has_pool; /* else the current one of the stream's device */
    CUmemoryPool pool;
    CUstream handle;
    bool per_thread;
};

static CUresult async_take(CUdeviceptr *dptr, const struct async_request *request)
{
    CUstream stream;
    CUresult result = async_find_stream(request->handle, request->per_thread, &stream);

    if (result)
        return result;
    CUmemoryPool pool =
        request->has_pool ? request->pool : pool_of_device(stream->context->ordinal);
    if (!dptr || !pool_is_usable(pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (!request->bytes)
        return CUDA_SUCCESS;
    if (request->bytes > ASYNC_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->capture) {
        uint64_t start = 0;

        result = capture_allocate(stream, request->bytes, pool->location.id, &start);
        *dptr = start;
        return result;
    }
    const struct memory *memory = pool_allocate(pool, request->bytes);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct async_request request = {.bytes = bytesize, .handle = hStream};

    if (dptr)
        *dptr = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocAsync, PROCESS_SAFE);
    return result ? result : process_leave(async_take(dptr, &request));
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct async_request request = {.bytes = bytesize, .handle = hStream, .per_thread = true};

    if (dptr)
        *dptr = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocAsync_ptsz, PROCESS_SAFE);
    return result ? result : process_leave(async_take(dptr, &request));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    struct async_request request = {
        .bytes = bytesize, .has_pool = true, .pool = pool, .handle = hStream};

    if (dptr)
        *dptr = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocFromPoolAsync, PROCESS_SAFE);
    return result ? result : process_leave(async_take(dptr, &request));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                              CUstream hStream)
{
    struct async_request request = {
        .bytes = bytesize, .has_pool = true, .pool = pool, .handle = hStream, .per_thread = true};

    if (dptr)
        *dptr = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocFromPoolAsync_ptsz, PROCESS_SAFE);
    return result ? result : process_leave(async_take(dptr, &request));
}

static CUresult async_put(uint64_t start, CUstream handle, bool per_thread)
{
    CUstream stream;
    CUresult result = async_find_stream(handle, per_thread, &stream);

    if (result || !start)
        return result;
    if (stream->capture)
        return capture_free(stream, start);
    struct memory *memory = memory_find_start(start);
    if (!memory || !memory_is_freeable(memory))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory->kind == MEMORY_GRAPH)
        graph_memory_free(memory);
    else if (memory->kind == MEMORY_IMPORTED)
        import_close(memory->import);
    else if (memory->kind == MEMORY_POOLED)
        pool_free(memory, stream);
    else
        linear_free_later(memory, stream);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuMemFreeAsync, PROCESS_SAFE);

    return result ? result : process_leave(async_put(dptr, hStream, false));
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuMemFreeAsync_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(async_put(dptr, hStream, true));
}
