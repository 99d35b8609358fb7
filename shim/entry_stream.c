/* SPDX-License-Identifier: MIT
 *
 * Streams, of which every fourth takes a block of 2 MiB, kept by the context when they are
 * destroyed (measured, driver 580.159).
 */
#include "driver.h"
#include "entry.h"

static bool entry_begin_stream(struct truth_call *call, enum api api)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    (void)driver_here(&place);
    return truth_begin(call, LIMIT_STREAM, place.device, api, 0);
}

static CUresult entry_end_stream(struct truth_call *call, CUresult result, CUstream *stream,
                                 CUstream before)
{
    if (result != CUDA_SUCCESS) {
        truth_cancel(call, result);
    } else if (!truth_settle(call)) {
        real.cuStreamDestroy_v2(*stream);
        truth_give_up(call);
        *stream = before; /* untouched, as the driver leaves it when it has no memory */
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuStreamCreate(phStream, Flags);
    if (!entry_begin_stream(&call, API_cuStreamCreate))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUstream before = phStream ? *phStream : NULL;
    return entry_end_stream(&call, real.cuStreamCreate(phStream, Flags), phStream, before);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuStreamCreateWithPriority(phStream, flags, priority);
    if (!entry_begin_stream(&call, API_cuStreamCreateWithPriority))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUstream before = phStream ? *phStream : NULL;
    return entry_end_stream(&call, real.cuStreamCreateWithPriority(phStream, flags, priority),
                            phStream, before);
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                        int priority)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuGreenCtxStreamCreate(phStream, greenCtx, flags, priority);
    if (!entry_begin_stream(&call, API_cuGreenCtxStreamCreate))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUstream before = phStream ? *phStream : NULL;
    return entry_end_stream(&call, real.cuGreenCtxStreamCreate(phStream, greenCtx, flags, priority),
                            phStream, before);
}
