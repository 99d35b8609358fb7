// SPDX-License-Identifier: MIT
//
// Stream capture: begun, ended, asked, and the thread's mode.

#include "capture.h"
#include "process.h"

static CUresult capture_start(CUstream handle, bool per_thread, CUstreamCaptureMode mode)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    return result ? result : capture_begin(stream, mode);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamBeginCapture, PROCESS_SAFE);

    return result ? result
                  : process_leave(capture_start(hStream, false, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuStreamBeginCapture_ptsz, PROCESS_SAFE);

    return result ? result
                  : process_leave(capture_start(hStream, true, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    CUresult result = process_enter(SYMBOL_cuStreamBeginCapture_v2, PROCESS_SAFE);

    return result ? result : process_leave(capture_start(hStream, false, mode));
}

CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
    CUresult result = process_enter(SYMBOL_cuStreamBeginCapture_v2_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(capture_start(hStream, true, mode));
}

static CUresult capture_finish(CUstream handle, bool per_thread, CUgraph *phGraph)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result == CUDA_SUCCESS && !phGraph)
        result = CUDA_ERROR_INVALID_VALUE;
    return result ? result : capture_end(stream, phGraph);
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    CUresult result = process_enter(SYMBOL_cuStreamEndCapture, PROCESS_SAFE);

    return result ? result : process_leave(capture_finish(hStream, false, phGraph));
}

CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
    CUresult result = process_enter(SYMBOL_cuStreamEndCapture_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(capture_finish(hStream, true, phGraph));
}

static CUresult capture_ask(CUstream handle, bool per_thread, CUstreamCaptureStatus *status)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (result == CUDA_SUCCESS && !status)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *status = capture_status(stream);
    return result;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    CUresult result = process_enter(SYMBOL_cuStreamIsCapturing, PROCESS_SAFE);

    return result ? result : process_leave(capture_ask(hStream, false, captureStatus));
}

CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    CUresult result = process_enter(SYMBOL_cuStreamIsCapturing_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(capture_ask(hStream, true, captureStatus));
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult result = process_enter(SYMBOL_cuThreadExchangeStreamCaptureMode, PROCESS_SAFE);

    return result ? result : process_leave(capture_exchange_mode(mode));
}
