// SPDX-License-Identifier: MIT
//
// cuGetProcAddress in its two forms. The rules are those of the 580 driver: undecorated names only,
// the newest entry that is not above the version asked for, per-thread variants on flag 2. Works
// before cuInit.

#include "symbols.h"

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult result = symbols_count_call(SYMBOL_cuGetProcAddress_v2);

    if (result)
        return result;
    if (!symbol || !pfn || flags >= 4)
        return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult found = symbols_find(symbol, cudaVersion, flags >= 2, pfn);
    if (symbolStatus)
        *symbolStatus = found;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result = symbols_count_call(SYMBOL_cuGetProcAddress);
    void *address;

    if (result)
        return result;
    if (!symbol || !pfn || flags >= 4)
        return CUDA_ERROR_INVALID_VALUE;
    /* This form leaves *pfn alone when it fails. */
    if (symbols_find(symbol, cudaVersion, flags >= 2, &address) != CU_GET_PROC_ADDRESS_SUCCESS)
        return CUDA_ERROR_NOT_FOUND;
    *pfn = address;
    return CUDA_SUCCESS;
}
