// SPDX-License-Identifier: MIT
//
// cuMemAlloc and its kin, with what they leave in their outputs when they fail. The names without
// _v2 are the CUDA 2.x interface: its 32-bit addresses come from below 4 GiB.

#include "graph_memory.h"
#include "import.h"
#include "linear.h"
#include "pool.h"
#include "process.h"

#define PITCH_ALIGNMENT 512u

static CUresult linear_take(uint64_t bytes, bool has_output, bool low, uint64_t *start)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result == CUDA_SUCCESS && low && process.config.is_h200)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result)
        return result;
    if (!has_output || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const struct memory *memory = linear_allocate(context, bytes, low);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *start = memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    uint64_t start = 0;
    CUresult result = process_enter(SYMBOL_cuMemAlloc, PROCESS_UNSAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(linear_take(bytesize, dptr != NULL, true, &start));
    if (dptr)
        *dptr = (CUdeviceptr_v1)start;
    return result;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    uint64_t start = 0;
    CUresult result = process_enter(SYMBOL_cuMemAlloc_v2, PROCESS_UNSAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(linear_take(bytesize, dptr != NULL, false, &start));
    if (dptr)
        *dptr = start;
    return result;
}

/* *pitch is told even when the memory is then not there. */
static CUresult linear_take_pitch(uint64_t width, uint64_t height, unsigned element,
                                  bool has_outputs, bool low, uint64_t *start, uint64_t *pitch)
{
    CUcontext context;
    CUresult result = context_current(&context);
    uint64_t bytes;

    if (result == CUDA_SUCCESS && low && process.config.is_h200)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result)
        return result;
    if (!has_outputs || !width || !height || (element != 4 && element != 8 && element != 16) ||
        width > UINT64_MAX - PITCH_ALIGNMENT)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = driver_round(width, PITCH_ALIGNMENT);
    if (__builtin_mul_overflow(*pitch, height, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    const struct memory *memory = linear_allocate(context, bytes, low);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *start = memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
                                 unsigned int WidthInBytes, unsigned int Height,
                                 unsigned int ElementSizeBytes)
{
    uint64_t start = 0, pitch = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocPitch, PROCESS_UNSAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(linear_take_pitch(WidthInBytes, Height, ElementSizeBytes,
                                                 dptr && pPitch, true, &start, &pitch));
    if (dptr)
        *dptr = (CUdeviceptr_v1)start;
    if (pPitch)
        *pPitch = (unsigned)pitch;
    return result;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                    size_t Height, unsigned int ElementSizeBytes)
{
    uint64_t start = 0, pitch = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocPitch_v2, PROCESS_UNSAFE);

    if (result == CUDA_SUCCESS)
        result = process_leave(linear_take_pitch(WidthInBytes, Height, ElementSizeBytes,
                                                 dptr && pPitch, false, &start, &pitch));
    if (dptr)
        *dptr = start;
    if (pPitch)
        *pPitch = pitch;
    return result;
}

static CUresult linear_take_managed(CUdeviceptr *dptr, uint64_t bytes, unsigned flags)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!dptr || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    const struct memory *memory = linear_allocate_managed(context, bytes);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    if (dptr)
        *dptr = 0;
    CUresult result = process_enter(SYMBOL_cuMemAllocManaged, PROCESS_UNSAFE);

    return result ? result : process_leave(linear_take_managed(dptr, bytesize, flags));
}

static CUresult linear_put(uint64_t start)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return result;
    if (!start)
        return CUDA_SUCCESS;
    /* A driver quirk: without a context it knows no address, but one of another context is fine. */
    struct memory *memory = result ? NULL : memory_find_start(start);
    if (!memory || !memory_is_freeable(memory))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory->kind == MEMORY_POOLED)
        pool_free(memory, NULL);
    else if (memory->kind == MEMORY_GRAPH)
        graph_memory_free(memory);
    else if (memory->kind == MEMORY_IMPORTED)
        import_close(memory->import);
    else
        linear_free(memory);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
    CUresult result = process_enter(SYMBOL_cuMemFree, PROCESS_UNSAFE);

    if (result)
        return result;
    return process_leave(process.config.is_h200 ? CUDA_ERROR_INVALID_CONTEXT : linear_put(dptr));
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    CUresult result = process_enter(SYMBOL_cuMemFree_v2, PROCESS_UNSAFE);

    return result ? result : process_leave(linear_put(dptr));
}
