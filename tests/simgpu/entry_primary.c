// SPDX-License-Identifier: MIT
//
// The primary context of each device: retained, released, reset.

#include "context.h"
#include "process.h"

static CUresult primary_find(CUdevice dev, CUcontext *context)
{
    unsigned gpu;

    if (!process_find_gpu(dev, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    *context = context_primary(dev);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxRetain, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    if (!pctx)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    result = primary_find(dev, &context);
    if (result == CUDA_SUCCESS && !context->is_alive)
        result = context_revive(context);
    if (result == CUDA_SUCCESS) {
        context->users++;
        *pctx = context;
    }
    return process_leave(result);
}

static CUresult primary_release(CUdevice dev)
{
    CUcontext context;
    CUresult result = primary_find(dev, &context);

    if (result)
        return result;
    /* A reset leaves the count alone. */
    if (!context->users)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->users == 0)
        context_end(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxRelease, PROCESS_SAFE);

    return result ? result : process_leave(primary_release(dev));
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxRelease_v2, PROCESS_SAFE);

    return result ? result : process_leave(primary_release(dev));
}

static CUresult primary_reset(CUdevice dev)
{
    CUcontext context;
    CUresult result = primary_find(dev, &context);

    if (result == CUDA_SUCCESS)
        context_end(context);
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxReset, PROCESS_SAFE);

    return result ? result : process_leave(primary_reset(dev));
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxReset_v2, PROCESS_SAFE);

    return result ? result : process_leave(primary_reset(dev));
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxGetState, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    if (!flags || !active)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    result = primary_find(dev, &context);
    if (result == CUDA_SUCCESS) {
        *flags = context->flags;
        *active = context->is_alive;
    }
    return process_leave(result);
}

static CUresult primary_set_flags(CUdevice dev, unsigned flags)
{
    CUcontext context;
    CUresult result = primary_find(dev, &context);

    if (result == CUDA_SUCCESS && !context_flags_are_legal(flags))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->flags = flags;
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxSetFlags, PROCESS_SAFE);

    return result ? result : process_leave(primary_set_flags(dev, flags));
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuDevicePrimaryCtxSetFlags_v2, PROCESS_SAFE);

    return result ? result : process_leave(primary_set_flags(dev, flags));
}
