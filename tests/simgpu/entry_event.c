// SPDX-License-Identifier: MIT
//
// Events, and streams that wait for them.

#include "capture.h"
#include "context.h"
#include "process.h"

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuEventCreate, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS && (!phEvent || Flags > 7))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return process_leave(result);
    CUevent event = event_create(context);
    if (event)
        *phEvent = event;
    return process_leave(event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult event_end(CUevent event)
{
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    event_destroy(event);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    CUresult result = process_enter(SYMBOL_cuEventDestroy, PROCESS_SAFE);

    return result ? result : process_leave(event_end(hEvent));
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
    CUresult result = process_enter(SYMBOL_cuEventDestroy_v2, PROCESS_SAFE);

    return result ? result : process_leave(event_end(hEvent));
}

static CUresult event_record(CUevent event, CUstream handle, bool per_thread)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result)
        return result;
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    capture_record(stream, event);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuEventRecord, PROCESS_SAFE);

    return result ? result : process_leave(event_record(hEvent, hStream, false));
}

CUresult CUDAAPI cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuEventRecord_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(event_record(hEvent, hStream, true));
}

/* An event that stands in a capture has no state of its own to ask for. */
static CUresult event_check(CUevent event)
{
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) {
        capture_invalidate(event->capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return capture_spoil() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    CUresult result = process_enter(SYMBOL_cuEventQuery, PROCESS_SAFE);

    return result ? result : process_leave(event_check(hEvent));
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    CUresult result = process_enter(SYMBOL_cuEventSynchronize, PROCESS_SAFE);

    if (result)
        return result;
    result = event_check(hEvent);
    if (result == CUDA_SUCCESS && hEvent->stream)
        stream_synchronize(hEvent->stream);
    return process_leave(result);
}

static CUresult event_wait(CUstream handle, bool per_thread, CUevent event)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result)
        return result;
    return handle_is(event, HANDLE_EVENT) ? capture_wait(stream, event) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuStreamWaitEvent, PROCESS_SAFE);

    (void)Flags; /* external events only matter to graphs that run */
    return result ? result : process_leave(event_wait(hStream, false, hEvent));
}

CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuStreamWaitEvent_ptsz, PROCESS_SAFE);

    (void)Flags;
    return result ? result : process_leave(event_wait(hStream, true, hEvent));
}
