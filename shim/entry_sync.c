/* SPDX-License-Identifier: MIT
 *
 * Synchronisation, after which the driver gives back what was freed in stream order. It says so to
 * nobody, and the ledger would show memory that is gone; so after each, if anything is awaited, we
 * look.
 */
#include "driver.h"
#include "entry.h"
#include "limit_later.h"
#include "limit_pools.h"

static CUresult entry_look(CUresult result)
{
    if (result == CUDA_SUCCESS && limit_awaits()) {
        limit_end_pools();
        driver_look_everywhere();
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize(hStream);
    return entry_look(real.cuStreamSynchronize(hStream));
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamSynchronize_ptsz(hStream);
    return entry_look(real.cuStreamSynchronize_ptsz(hStream));
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy(hStream);
    return entry_look(real.cuStreamDestroy(hStream));
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    if (!entry_enter())
        return real.cuStreamDestroy_v2(hStream);
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
    return entry_look(real.cuCtxSynchronize());
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!entry_enter())
        return real.cuCtxSynchronize_v2(ctx);
    return entry_look(real.cuCtxSynchronize_v2(ctx));
}
