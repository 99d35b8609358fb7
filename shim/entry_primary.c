/* SPDX-License-Identifier: MIT
 *
 * Primary contexts, one a device, which all users of it share, and green contexts, which are users
 * of them. The first user takes the context's own memory, the last one gives it back.
 */
#include "driver.h"
#include "entry.h"
#include "limit_contexts.h"
#include "start.h"

/* Whether a device's primary context is gone: a release ends it only if it was the last. */
static bool entry_primary_is_gone(CUdevice device)
{
    unsigned int flags;
    int is_active = 1;
    return real.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS &&
           !is_active;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRetain(pctx, dev);
    if (!entry_primary_is_gone(dev)) /* one user more, or the driver's own answer */
        return entry_pass(real.cuDevicePrimaryCtxRetain(pctx, dev));
    if (!driver_begin_context(&call, dev, API_cuDevicePrimaryCtxRetain))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUcontext before = pctx ? *pctx : NULL;
    CUresult result = real.cuDevicePrimaryCtxRetain(pctx, dev);
    if (result != CUDA_SUCCESS) {
        truth_cancel(&call, result);
    } else if (!truth_settle(&call)) {
        real.cuDevicePrimaryCtxRelease_v2(dev);
        truth_give_up(&call);
        *pctx = before; /* untouched, as the driver leaves it when it has no memory */
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

/* A green context brings its device's primary context along, if there is none; else it takes a few
 * MiB of that one's. */
static bool entry_begin_green(struct truth_call *call, CUdevice dev)
{
    if (entry_primary_is_gone(dev) || !driver_knows(dev) || dev >= BUDGET_DEVICES) {
        bool fits = driver_begin_context(call, dev, API_cuGreenCtxCreate);
        call->ticket.what = LIMIT_GREEN_CONTEXT; /* so that no context is thought to take as much */
        return fits;
    }
    return truth_begin(call, LIMIT_GREEN_CONTEXT, (unsigned)dev, API_cuGreenCtxCreate, 0);
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                  unsigned int flags)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuGreenCtxCreate(phCtx, desc, dev, flags);
    if (!entry_begin_green(&call, dev))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUgreenCtx before = phCtx ? *phCtx : NULL;
    CUresult result = real.cuGreenCtxCreate(phCtx, desc, dev, flags);
    if (result != CUDA_SUCCESS) {
        truth_cancel(&call, result);
    } else if (!truth_settle(&call)) {
        real.cuGreenCtxDestroy(*phCtx);
        truth_give_up(&call);
        *phCtx = before;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}

static void entry_watch_primary(struct truth_call *call, CUdevice dev)
{
    bool is_known = dev >= 0 && dev < BUDGET_DEVICES && start_knows_device((unsigned)dev);
    truth_watch(call, LIMIT_CONTEXT, is_known ? (unsigned)dev : BUDGET_DEVICES);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease(dev);
    uint64_t mark = limit_context_mark();
    entry_watch_primary(&call, dev);
    CUresult result = real.cuDevicePrimaryCtxRelease(dev);
    if (result == CUDA_SUCCESS && entry_primary_is_gone(dev))
        limit_primary_destroyed((unsigned)dev, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuDevicePrimaryCtxRelease_v2(dev);
    uint64_t mark = limit_context_mark();
    entry_watch_primary(&call, dev);
    CUresult result = real.cuDevicePrimaryCtxRelease_v2(dev);
    if (result == CUDA_SUCCESS && entry_primary_is_gone(dev))
        limit_primary_destroyed((unsigned)dev, mark);
    truth_watched(&call);
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
        if (start_knows_device(device))
            truth_look_gone(device);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset(dev);
    uint64_t mark = limit_context_mark();
    entry_watch_primary(&call, dev);
    CUresult result = real.cuDevicePrimaryCtxReset(dev);
    if (result == CUDA_SUCCESS)
        limit_primary_destroyed((unsigned)dev, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuDevicePrimaryCtxReset_v2(dev);
    uint64_t mark = limit_context_mark();
    entry_watch_primary(&call, dev);
    CUresult result = real.cuDevicePrimaryCtxReset_v2(dev);
    if (result == CUDA_SUCCESS)
        limit_primary_destroyed((unsigned)dev, mark);
    truth_watched(&call);
    guard_leave();
    return result;
}
