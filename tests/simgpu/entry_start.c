// SPDX-License-Identifier: MIT
//
// The driver as such: initialisation, version, error texts, export tables (of which there are
// none).

#include "process.h"

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
#define ERROR(_code, _text) {_code, #_code, _text},
    ERROR(CUDA_SUCCESS, "no error") ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument") ERROR(
        CUDA_ERROR_OUT_OF_MEMORY,
        "out of memory") ERROR(CUDA_ERROR_NOT_INITIALIZED,
                               "initialization error") ERROR(CUDA_ERROR_DEINITIALIZED,
                                                             "driver shutting down")
        ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library") ERROR(
            CUDA_ERROR_NO_DEVICE,
            "no CUDA-capable device is detected") ERROR(CUDA_ERROR_INVALID_DEVICE,
                                                        "invalid device ordinal")
            ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context") ERROR(
                CUDA_ERROR_MAP_FAILED,
                "mapping of buffer object failed") ERROR(CUDA_ERROR_OPERATING_SYSTEM,
                                                         "OS call failed or operation not supported on this OS")
                ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle") ERROR(
                    CUDA_ERROR_ILLEGAL_STATE,
                    "the operation cannot be performed in the present state")
                    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found") ERROR(
                        CUDA_ERROR_NOT_READY,
                        "device not ready") ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
                                                  "cannot set while device is active in this process")
                        ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed") ERROR(
                            CUDA_ERROR_NOT_PERMITTED, "operation not permitted")
                            ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported") ERROR(
                                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                "operation not permitted when stream is capturing")
                                ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                      "operation failed due to a previous error during capture")
                                    ERROR(
                                        CUDA_ERROR_STREAM_CAPTURE_MERGE,
                                        "operation would result in a merge of separate capture sequences")
                                        ERROR(
                                            CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                            "capture was not ended in the same stream as it began")
                                            ERROR(
                                                CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                                "dependency created on uncaptured work in another stream")
                                                ERROR(
                                                    CUDA_ERROR_CAPTURED_EVENT,
                                                    "operation not permitted on an event last recorded in a capturing stream")
                                                    ERROR(
                                                        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                                        "attempt to terminate a thread-local capture sequence from another thread")
                                                        ERROR(CUDA_ERROR_UNKNOWN, "unknown error")
#undef ERROR
};

static int error_find(CUresult code)
{
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return (int)i;
    return -1;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    CUresult result = symbols_count_call(SYMBOL_cuGetErrorName);
    int found = error_find(error);

    if (result || !pStr)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *pStr = found < 0 ? NULL : errors[found].name;
    return found < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    CUresult result = symbols_count_call(SYMBOL_cuGetErrorString);
    int found = error_find(error);

    if (result || !pStr)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *pStr = found < 0 ? NULL : errors[found].text;
    return found < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuInit, PROCESS_ALWAYS);

    if (result)
        return result;
    return process_leave(Flags ? CUDA_ERROR_INVALID_VALUE : process_start());
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    CUresult result = symbols_count_call(SYMBOL_cuDriverGetVersion);

    if (result || !driverVersion)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *driverVersion = driver_version;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    CUresult result = symbols_count_call(SYMBOL_cuGetExportTable);

    (void)ppExportTable;  /* left alone on failure */
    (void)pExportTableId; /* we have none of them */
    return result ? result : CUDA_ERROR_INVALID_VALUE;
}
