/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress, by which the CUDA runtime finds all it needs. The driver answers; if its answer
 * is the address of a function that has a hook, the hook goes out instead. So versions, flags and
 * names of drivers to come need no knowledge here (measured on driver 580.159: each of 589 answers
 * is the address of one exported symbol).
 */
#include "entry.h"
#include "hooks.h"
#include "unknown.h"

static void entry_replace(const char *symbol, int version, void **pfn)
{
    if (!pfn || !*pfn)
        return;
    real_function drivers = (real_function)*pfn, answer = hooks_replace(drivers);
    if (answer == drivers)
        unknown_note_answer(symbol, version);
    *pfn = (void *)answer;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int driverVersion,
                                  cuuint64_t flags)
{
    (void)real_ready();
    CUresult result = real.cuGetProcAddress(symbol, pfn, driverVersion, flags);
    if (result == CUDA_SUCCESS)
        entry_replace(symbol, driverVersion, pfn);
    return result;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int driverVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolFound)
{
    (void)real_ready();
    CUresult result = real.cuGetProcAddress_v2(symbol, pfn, driverVersion, flags, symbolFound);
    if (result == CUDA_SUCCESS)
        entry_replace(symbol, driverVersion, pfn);
    return result;
}
