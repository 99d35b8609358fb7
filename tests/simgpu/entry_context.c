// SPDX-License-Identifier: MIT
//
// Contexts of the program's own, and the thread's current one.

#include "context.h"
#include "process.h"

/* ---- coming and going ---- */

static CUresult ctx_create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned api_version)
{
    unsigned gpu;

    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process_find_gpu(dev, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    if (process.config.is_h200 && api_version < 3020)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext context = context_create(dev, flags, api_version);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = context_revive(context);
    if (result == CUDA_SUCCESS)
        result = context_push(context);
    if (result) {
        context_end(context);
        return result;
    }
    context->users = 1;
    *pctx = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuCtxCreate, PROCESS_SAFE);

    return result ? result : process_leave(ctx_create(pctx, flags, dev, 3010));
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuCtxCreate_v2, PROCESS_SAFE);

    return result ? result : process_leave(ctx_create(pctx, flags, dev, 3020));
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuCtxCreate_v3, PROCESS_SAFE);

    (void)paramsArray; /* affinity costs no memory */
    (void)numParams;
    return result ? result : process_leave(ctx_create(pctx, flags, dev, 3020));
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                unsigned int flags, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuCtxCreate_v4, PROCESS_SAFE);

    (void)ctxCreateParams;
    return result ? result : process_leave(ctx_create(pctx, flags, dev, 3020));
}

static CUresult ctx_destroy(CUcontext context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(context, HANDLE_CONTEXT) || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->is_alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context_end(context);
    if (context_top() == context)
        context_set(NULL);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxDestroy, PROCESS_SAFE);

    return result ? result : process_leave(ctx_destroy(ctx));
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxDestroy_v2, PROCESS_SAFE);

    return result ? result : process_leave(ctx_destroy(ctx));
}

CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuCtxAttach, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS && (!pctx || flags))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        context->users++;
        *pctx = context;
    }
    return process_leave(result);
}

CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxDetach, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(ctx, HANDLE_CONTEXT))
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (!ctx->is_alive)
        return process_leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (--ctx->users == 0) {
        context_end(ctx);
        if (context_top() == ctx)
            context_set(NULL);
    }
    return process_leave(CUDA_SUCCESS);
}

/* ---- the current one ---- */

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetCurrent, PROCESS_SAFE);

    if (result)
        return result;
    if (!pctx)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *pctx = context_top();
    return process_leave(CUDA_SUCCESS);
}

/* A destroyed context may be made current: what is done with it then answers 709. */
CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxSetCurrent, PROCESS_SAFE);

    if (result)
        return result;
    if (ctx && !handle_is(ctx, HANDLE_CONTEXT))
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    context_set(ctx);
    return process_leave(CUDA_SUCCESS);
}

static CUresult ctx_push(CUcontext context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    return handle_is(context, HANDLE_CONTEXT) ? context_push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxPushCurrent, PROCESS_SAFE);

    return result ? result : process_leave(ctx_push(ctx));
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxPushCurrent_v2, PROCESS_SAFE);

    return result ? result : process_leave(ctx_push(ctx));
}

static CUresult ctx_pop(CUcontext *pctx)
{
    CUcontext context;
    CUresult result = context_pop(&context);

    if (result == CUDA_SUCCESS && pctx)
        *pctx = context;
    return result;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxPopCurrent, PROCESS_SAFE);

    return result ? result : process_leave(ctx_pop(pctx));
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxPopCurrent_v2, PROCESS_SAFE);

    return result ? result : process_leave(ctx_pop(pctx));
}

/* ---- what it is, and waiting for it ---- */

static CUresult ctx_get_device(CUdevice *device, CUcontext context)
{
    if (!context)
        context = context_top();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(context, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->ordinal; /* of a destroyed context as well */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetDevice, PROCESS_SAFE);

    return result ? result : process_leave(ctx_get_device(device, NULL));
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetDevice_v2, PROCESS_SAFE);

    return result ? result : process_leave(ctx_get_device(device, ctx));
}

static CUresult ctx_synchronize(CUcontext context)
{
    if (!context) {
        CUresult result = context_current(&context);

        if (result)
            return result;
    }
    if (!handle_is(context, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->is_alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stream_synchronize_context(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    CUresult result = process_enter(SYMBOL_cuCtxSynchronize, PROCESS_UNSAFE);

    return result ? result : process_leave(ctx_synchronize(NULL));
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuCtxSynchronize_v2, PROCESS_UNSAFE);

    return result ? result : process_leave(ctx_synchronize(ctx));
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetApiVersion, PROCESS_SAFE);

    if (result)
        return result;
    CUcontext context = ctx ? ctx : context_top();
    if (!version)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(context, HANDLE_CONTEXT) || !context->is_alive)
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    *version = context->api_version;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetFlags, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS && !flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = context->flags;
    return process_leave(result);
}
