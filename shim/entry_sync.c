/* SPDX-License-Identifier: MIT
 *
 * Synchronisation, after which the driver gives back what was freed in stream order. It says so to
 * nobody, and the ledger would show memory that is gone; so after each, if anything is awaited, we
 * look. What was unmapped from arrays cannot be looked at: it is out by then.
 */
#include "driver.h"
#include "entry.h"
#include "limit_later.h"
#include "limit_pools.h"
#include "limit_tiles.h"

static CUresult entry_look(CUresult result)
{
    if (result == CUDA_SUCCESS && limit_awaits()) {
        limit_end_pools();
        driver_look_everywhere();
    }
    return entry_pass(result);
}

static void entry_note_moved(struct tiles_queue queue, uint64_t mark)
{
    limit_tiles_synchronized(&queue, mark);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize(hStream);
    uint64_t mark = limit_tiles_mark();
    CUresult result = real.cuStreamSynchronize(hStream);
    if (result == CUDA_SUCCESS && mark != 0)
        entry_note_moved(driver_queue(hStream, false), mark);
    return entry_look(result);
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize_ptsz(hStream);
    uint64_t mark = limit_tiles_mark();
    CUresult result = real.cuStreamSynchronize_ptsz(hStream);
    if (result == CUDA_SUCCESS && mark != 0)
        entry_note_moved(driver_queue(hStream, true), mark);
    return entry_look(result);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy(hStream);
    limit_tiles_stream_ends((uint64_t)hStream);
    return entry_look(real.cuStreamDestroy(hStream));
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy_v2(hStream);
    limit_tiles_stream_ends((uint64_t)hStream);
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
    uint64_t mark = limit_tiles_mark();
    CUresult result = real.cuCtxSynchronize();
    if (result == CUDA_SUCCESS && mark != 0 && real.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
        entry_note_moved((struct tiles_queue){(uint64_t)context, TILES_EVERY_STREAM}, mark);
    return entry_look(result);
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxSynchronize_v2(ctx);
    uint64_t mark = limit_tiles_mark();
    CUresult result = real.cuCtxSynchronize_v2(ctx);
    if (result == CUDA_SUCCESS && mark != 0)
        entry_note_moved((struct tiles_queue){(uint64_t)ctx, TILES_EVERY_STREAM}, mark);
    return entry_look(result);
}
