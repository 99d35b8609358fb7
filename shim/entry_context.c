/* SPDX-License-Identifier: MIT
 *
 * cuInit, and contexts: with a context dies the linear and managed memory that was allocated in it.
 * Nothing is asked for here yet; what a context itself takes is not counted.
 */
#include "driver.h"
#include "entry.h"
#include "limit_contexts.h"

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

/* The end of a context: of cuCtxDestroy, and of the cuCtxDetach that is the last. */
static CUresult entry_end_context(CUcontext context, CUresult (*end)(CUcontext context))
{
    struct removal removal;
    limit_context_detach(&removal, (uint64_t)context);
    CUresult result = end(context);
    if (result == CUDA_SUCCESS) {
        limit_context_gone((uint64_t)context);
        limit_release(&removal);
    } else {
        limit_restore(&removal);
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDetach(ctx);
    if (limit_context_is_last((uint64_t)ctx))
        return entry_end_context(ctx, real.cuCtxDetach);
    CUresult result = real.cuCtxDetach(ctx);
    if (result == CUDA_SUCCESS)
        limit_context_left((uint64_t)ctx);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDestroy(ctx);
    return entry_end_context(ctx, real.cuCtxDestroy);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxDestroy_v2(ctx);
    return entry_end_context(ctx, real.cuCtxDestroy_v2);
}

/* After a release: whether it was the last is known only now, and by now another thread may have
 * retained the context again and allocated in it. So what dies is what was there before, up to the
 * mark. */
static CUresult entry_end_release(CUresult result, CUdevice device, uint64_t mark)
{
    unsigned int flags;
    int is_active = 1;
    if (result == CUDA_SUCCESS && driver_knows(device) &&
        real.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS && !is_active) {
        struct removal removal;
        limit_primary_detach(&removal, (unsigned)device, mark);
        limit_release(&removal);
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease(dev);
    uint64_t mark = limit_context_mark();
    return entry_end_release(real.cuDevicePrimaryCtxRelease(dev), dev, mark);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease_v2(dev);
    uint64_t mark = limit_context_mark();
    return entry_end_release(real.cuDevicePrimaryCtxRelease_v2(dev), dev, mark);
}

static CUresult entry_reset_primary(CUdevice device, CUresult (*reset)(CUdevice device))
{
    struct removal removal;
    limit_primary_detach(&removal, (unsigned)device, limit_context_mark());
    CUresult result = reset(device);
    if (result == CUDA_SUCCESS)
        limit_release(&removal);
    else
        limit_restore(&removal);
    return entry_pass(result);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset(dev);
    return entry_reset_primary(dev, real.cuDevicePrimaryCtxReset);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset_v2(dev);
    return entry_reset_primary(dev, real.cuDevicePrimaryCtxReset_v2);
}
