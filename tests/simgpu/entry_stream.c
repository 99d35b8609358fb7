// SPDX-License-Identifier: MIT
//
// Streams: created, destroyed, waited for, asked.

#include "capture.h"
#include "context.h"
#include "process.h"

static CUresult stream_make(CUstream *phStream, unsigned flags, int priority)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!phStream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = stream_create(context, flags, priority);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = stream;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuStreamCreate, PROCESS_SAFE);

    return result ? result : process_leave(stream_make(phStream, Flags, 0));
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    CUresult result = process_enter(SYMBOL_cuStreamCreateWithPriority, PROCESS_SAFE);

    return result ? result : process_leave(stream_make(phStream, flags, priority));
}

static CUresult stream_end(CUstream handle)
{
    if (!handle_is(handle, HANDLE_STREAM) || handle == handle->context->legacy ||
        handle == handle->context->per_thread)
        return CUDA_ERROR_INVALID_HANDLE;
    stream_destroy(handle);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamDestroy, PROCESS_SAFE);

    return result ? result : process_leave(stream_end(hStream));
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamDestroy_v2, PROCESS_SAFE);

    return result ? result : process_leave(stream_end(hStream));
}

static CUresult stream_wait(CUstream handle, bool per_thread)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result == CUDA_SUCCESS)
        stream_synchronize(stream);
    return result;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamSynchronize, PROCESS_UNSAFE);

    return result ? result : process_leave(stream_wait(hStream, false));
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamSynchronize_ptsz, PROCESS_UNSAFE);

    return result ? result : process_leave(stream_wait(hStream, true));
}

/* All work is complete; a query gives nothing back. */
CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamQuery, PROCESS_UNSAFE);
    CUstream stream;

    return result ? result : process_leave(stream_find(hStream, false, &stream));
}

CUresult CUDAAPI cuStreamQuery_ptsz(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamQuery_ptsz, PROCESS_UNSAFE);
    CUstream stream;

    return result ? result : process_leave(stream_find(hStream, true, &stream));
}

static CUresult stream_get_context(CUstream handle, bool per_thread, CUcontext *pctx)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result == CUDA_SUCCESS && !pctx)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pctx = stream->context;
    return result;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    CUresult result = process_enter(SYMBOL_cuStreamGetCtx, PROCESS_SAFE);

    return result ? result : process_leave(stream_get_context(hStream, false, pctx));
}

CUresult CUDAAPI cuStreamGetCtx_ptsz(CUstream hStream, CUcontext *pctx)
{
    CUresult result = process_enter(SYMBOL_cuStreamGetCtx_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(stream_get_context(hStream, true, pctx));
}

static CUresult stream_get_device(CUstream handle, bool per_thread, CUdevice *device)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result == CUDA_SUCCESS && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *device = stream->context->ordinal;
    return result;
}

/* Unlike cuStreamGetCtx, the driver counts this one among the unsafe. */
CUresult CUDAAPI cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    CUresult result = process_enter(SYMBOL_cuStreamGetDevice, PROCESS_UNSAFE);

    return result ? result : process_leave(stream_get_device(hStream, false, device));
}

CUresult CUDAAPI cuStreamGetDevice_ptsz(CUstream hStream, CUdevice *device)
{
    CUresult result = process_enter(SYMBOL_cuStreamGetDevice_ptsz, PROCESS_UNSAFE);

    return result ? result : process_leave(stream_get_device(hStream, true, device));
}
