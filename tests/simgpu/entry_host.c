// SPDX-License-Identifier: MIT
//
// Pinned host memory: ordinary memory of the process, never counted.

#include "linear.h"
#include "process.h"

static CUresult host_take(void **pp, uint64_t bytes)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!pp)
        return CUDA_ERROR_INVALID_VALUE;
    *pp = NULL;
    if (!bytes)
        return CUDA_SUCCESS;
    const struct memory *memory = linear_allocate_host(context, bytes);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pp = (void *)(uintptr_t)memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    CUresult result = process_enter(SYMBOL_cuMemAllocHost_v2, PROCESS_UNSAFE);

    return result ? result : process_leave(host_take(pp, bytesize));
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuMemHostAlloc, PROCESS_UNSAFE);

    (void)Flags; /* portable, mapped, write-combined: all the same here */
    return result ? result : process_leave(host_take(pp, bytesize));
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    CUresult result = process_enter(SYMBOL_cuMemFreeHost, PROCESS_UNSAFE);

    if (result || !p)
        return result ? result : process_leave(CUDA_SUCCESS);
    struct memory *memory = memory_find_start((uintptr_t)p);
    if (!memory || memory->kind != MEMORY_HOST)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    linear_free(memory);
    return process_leave(CUDA_SUCCESS);
}
