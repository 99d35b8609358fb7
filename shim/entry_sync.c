/* SPDX-License-Identifier: MIT
 *
 * Synchronisation, after which the driver gives back what was freed in stream order. It says so to
 * nobody, and the ledger would show memory that is gone; so after each, if anything is awaited, we
 * look. What cannot be looked at, memory unmapped from arrays and what is left of destroyed
 * pools, is gone with the queue that it waited in.
 */
#include "driver.h"
#include "entry.h"
#include "limit_later.h"
#include "limit_pools.h"
#include "limit_tiles.h"

static CUresult entry_look(CUresult result)
{
    limit_note_thread();
    if (result == CUDA_SUCCESS && limit_awaits())
        driver_look_everywhere();
    if (result == CUDA_SUCCESS)
        truth_look_late(); /* what kernels have brought along until now */
    return entry_pass(result);
}

static void entry_note_over(struct queue queue, uint64_t mark)
{
    struct driver_place place;
    bool is_here = driver_here(&place) && (uint64_t)place.context == queue.context;
    limit_tiles_synchronized(&queue, mark);
    limit_pools_synchronized(&queue, is_here ? place.device : BUDGET_DEVICES, mark);
}

static CUresult entry_stream_is_over(CUresult result, uint64_t mark, CUstream stream,
                                     bool per_thread)
{
    if (result == CUDA_SUCCESS && mark != 0)
        entry_note_over(driver_queue(stream, per_thread), mark);
    return entry_look(result);
}

static CUresult entry_context_is_over(CUresult result, uint64_t mark, CUcontext context)
{
    if (result == CUDA_SUCCESS && mark != 0)
        entry_note_over((struct queue){(uint64_t)context, QUEUE_EVERY_STREAM}, mark);
    return entry_look(result);
}

static void entry_stream_ends(CUstream stream)
{
    limit_tiles_stream_ends((uint64_t)stream);
    if (limit_awaits())
        limit_pools_stream_ends((uint64_t)stream);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize(hStream);
    uint64_t mark = limit_sync_mark();
    return entry_stream_is_over(real.cuStreamSynchronize(hStream), mark, hStream, false);
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize_ptsz(hStream);
    uint64_t mark = limit_sync_mark();
    return entry_stream_is_over(real.cuStreamSynchronize_ptsz(hStream), mark, hStream, true);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy(hStream);
    entry_stream_ends(hStream);
    return entry_look(real.cuStreamDestroy(hStream));
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy_v2(hStream);
    entry_stream_ends(hStream);
    return entry_look(real.cuStreamDestroy_v2(hStream));
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    if (!entry_enter())
        return real.cuEventSynchronize(hEvent);
    return entry_look(real.cuEventSynchronize(hEvent));
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    if (!entry_enter())
        return real.cuCtxSynchronize();
    CUcontext context = NULL;
    uint64_t mark = limit_sync_mark();
    CUresult result = real.cuCtxSynchronize();
    if (mark != 0)
        real.cuCtxGetCurrent(&context);
    return entry_context_is_over(result, mark, context);
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxSynchronize_v2(ctx);
    uint64_t mark = limit_sync_mark();
    return entry_context_is_over(real.cuCtxSynchronize_v2(ctx), mark, ctx);
}
