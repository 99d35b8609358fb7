/* SPDX-License-Identifier: MIT
 *
 * cuInit, and contexts of the program's own making. A context takes some hundred MiB by itself,
 * which is only known once there is one: one that does not fit is destroyed again. With a context
 * dies the linear and managed memory that was allocated in it.
 */
#include "driver.h"
#include "entry.h"
#include "limit_contexts.h"
#include "truth.h"

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

static CUresult entry_created(struct truth_call *call, CUresult result, CUcontext *pctx,
                              CUcontext before)
{
    if (result != CUDA_SUCCESS) {
        truth_cancel(call, result);
    } else if (truth_settle(call)) {
        limit_context_created((uint64_t)*pctx, call->ticket.device, truth_took(call));
    } else {
        real.cuCtxDestroy_v2(*pctx);
        truth_give_up(call);
        *pctx = before; /* untouched, as the driver leaves it when it has no memory */
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxCreate(pctx, flags, dev);
    if (!driver_begin_context(&call, dev, API_cuCtxCreate))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUcontext before = pctx ? *pctx : NULL;
    return entry_created(&call, real.cuCtxCreate(pctx, flags, dev), pctx, before);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxCreate_v2(pctx, flags, dev);
    if (!driver_begin_context(&call, dev, API_cuCtxCreate_v2))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUcontext before = pctx ? *pctx : NULL;
    return entry_created(&call, real.cuCtxCreate_v2(pctx, flags, dev), pctx, before);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev);
    if (!driver_begin_context(&call, dev, API_cuCtxCreate_v3))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUcontext before = pctx ? *pctx : NULL;
    return entry_created(&call, real.cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev), pctx,
                         before);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev);
    if (!driver_begin_context(&call, dev, API_cuCtxCreate_v4))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUcontext before = pctx ? *pctx : NULL;
    return entry_created(&call, real.cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev), pctx,
                         before);
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
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxDetach(ctx);
    uint64_t mark = limit_context_mark();
    truth_watch(&call, LIMIT_CONTEXT, limit_context_device((uint64_t)ctx));
    CUresult result = real.cuCtxDetach(ctx);
    if (result == CUDA_SUCCESS)
        call.expected_bytes = -(int64_t)limit_context_detached((uint64_t)ctx, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxDestroy(ctx);
    uint64_t mark = limit_context_mark();
    truth_watch(&call, LIMIT_CONTEXT, limit_context_device((uint64_t)ctx));
    CUresult result = real.cuCtxDestroy(ctx);
    if (result == CUDA_SUCCESS)
        call.expected_bytes = -(int64_t)limit_context_destroyed((uint64_t)ctx, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuCtxDestroy_v2(ctx);
    uint64_t mark = limit_context_mark();
    truth_watch(&call, LIMIT_CONTEXT, limit_context_device((uint64_t)ctx));
    CUresult result = real.cuCtxDestroy_v2(ctx);
    if (result == CUDA_SUCCESS)
        call.expected_bytes = -(int64_t)limit_context_destroyed((uint64_t)ctx, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}
