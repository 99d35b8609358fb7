/* SPDX-License-Identifier: MIT
 *
 * cuInit, and contexts: with a context dies the linear and managed memory that was allocated in it.
 * Nothing is asked for here yet; what a context itself takes is not counted.
 */
#include "driver.h"
#include "entry.h"
#include "limit_contexts.h"
#include "start.h"

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    if (!entry_enter())
        return real.cuInit(Flags);
    /* With a configuration that is not understood, nothing is allowed; this is the place to say so.
     */
    CUresult result = driver_start() ? real.cuInit(Flags) : CUDA_ERROR_INVALID_VALUE;
    guard_leave();
    return result;
}

static CUresult entry_note_created(CUresult result, const CUcontext *pctx)
{
    if (result == CUDA_SUCCESS)
        limit_context_created((uint64_t)*pctx);
    return entry_pass(result);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    if (!entry_enter())
        return real.cuCtxCreate(pctx, flags, dev);
    return entry_note_created(real.cuCtxCreate(pctx, flags, dev), pctx);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    if (!entry_enter())
        return real.cuCtxCreate_v2(pctx, flags, dev);
    return entry_note_created(real.cuCtxCreate_v2(pctx, flags, dev), pctx);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    if (!entry_enter())
        return real.cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev);
    return entry_note_created(real.cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev), pctx);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    if (!entry_enter())
        return real.cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev);
    return entry_note_created(real.cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev), pctx);
}

CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    if (!entry_enter())
        return real.cuCtxAttach(pctx, flags);
    CUresult result = real.cuCtxAttach(pctx, flags);
    if (result == CUDA_SUCCESS)
        limit_context_attached((uint64_t)*pctx);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDetach(ctx);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuCtxDetach(ctx);
    if (result == CUDA_SUCCESS)
        limit_context_detached((uint64_t)ctx, mark);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDestroy(ctx);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuCtxDestroy(ctx);
    if (result == CUDA_SUCCESS)
        limit_context_destroyed((uint64_t)ctx, mark);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDestroy_v2(ctx);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuCtxDestroy_v2(ctx);
    if (result == CUDA_SUCCESS)
        limit_context_destroyed((uint64_t)ctx, mark);
    guard_leave();
    return result;
}

/* Whether a device's primary context is gone: a release ends it only if it was the last. */
static bool entry_primary_is_gone(CUdevice device)
{
    unsigned int flags;
    int is_active = 1;
    return real.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS &&
           !is_active;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease(dev);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuDevicePrimaryCtxRelease(dev);
    if (result == CUDA_SUCCESS && entry_primary_is_gone(dev))
        limit_primary_destroyed((unsigned)dev, mark);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease_v2(dev);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuDevicePrimaryCtxRelease_v2(dev);
    if (result == CUDA_SUCCESS && entry_primary_is_gone(dev))
        limit_primary_destroyed((unsigned)dev, mark);
    guard_leave();
    return result;
}

/* A green context is one more user of a device's primary context, and what is allocated in it is
 * that one's (measured, driver 580.159). It does not say which device's afterwards. */
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    if (!entry_enter())
        return real.cuGreenCtxDestroy(hCtx);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuGreenCtxDestroy(hCtx);
    for (unsigned device = 0; result == CUDA_SUCCESS && device < BUDGET_DEVICES; device++) {
        if (start_knows_device(device) && entry_primary_is_gone((CUdevice)device))
            limit_primary_destroyed(device, mark);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset(dev);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuDevicePrimaryCtxReset(dev);
    if (result == CUDA_SUCCESS)
        limit_primary_destroyed((unsigned)dev, mark);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset_v2(dev);
    uint64_t mark = limit_context_mark();
    CUresult result = real.cuDevicePrimaryCtxReset_v2(dev);
    if (result == CUDA_SUCCESS)
        limit_primary_destroyed((unsigned)dev, mark);
    guard_leave();
    return result;
}
