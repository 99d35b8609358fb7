/* SPDX-License-Identifier: MIT
 *
 * Libraries: code that belongs to no context. By default it is loaded into one only when something
 * of it is first asked for there, or launched (CUDA_MODULE_LOADING=LAZY), which nobody can undo, so
 * it is measured and not refused. With EAGER it is loaded at once, into all contexts, and refused
 * like a module.
 */
#include "blocks.h"
#include "driver.h"
#include "entry.h"
#include "image_size.h"

static bool entry_loads_eagerly(void)
{
    CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
    return real.cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING;
}

static bool entry_begin_library(struct truth_call *call, const void *code, enum api api)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    uint64_t least = 0;
    if (entry_loads_eagerly() && driver_here(&place) && code)
        (void)image_least_bytes(code, &least);
    least = least > BLOCKS_BYTES ? least - BLOCKS_BYTES : 0; /* one block may have room already */
    return truth_begin(call, LIMIT_CODE, place.device, api, least);
}

static CUresult entry_end_library(struct truth_call *call, CUresult result, CUlibrary *library,
                                  CUlibrary before)
{
    if (result != CUDA_SUCCESS) {
        truth_cancel(call);
    } else if (!truth_settle(call)) {
        real.cuLibraryUnload(*library);
        truth_give_up(call);
        *library = before; /* untouched, as the driver leaves it when it has no memory */
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                      libraryOptions, libraryOptionValues, numLibraryOptions);
    if (!entry_begin_library(&call, code, API_cuLibraryLoadData))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUlibrary before = library ? *library : NULL;
    return entry_end_library(&call,
                             real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues,
                                                    numJitOptions, libraryOptions,
                                                    libraryOptionValues, numLibraryOptions),
                             library, before);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                       CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
                                          numJitOptions, libraryOptions, libraryOptionValues,
                                          numLibraryOptions);
    if (!entry_begin_library(&call, NULL, API_cuLibraryLoadFromFile))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUlibrary before = library ? *library : NULL;
    return entry_end_library(
        &call,
        real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues, numJitOptions,
                                   libraryOptions, libraryOptionValues, numLibraryOptions),
        library, before);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryUnload(library);
    (void)driver_here(&place);
    truth_watch(&call, LIMIT_CODE, place.device);
    CUresult result = real.cuLibraryUnload(library);
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryGetModule(pMod, library);
    truth_watch_late(&call);
    CUresult result = real.cuLibraryGetModule(pMod, library);
    truth_watched_late(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryGetGlobal(dptr, bytes, library, name);
    truth_watch_late(&call);
    CUresult result = real.cuLibraryGetGlobal(dptr, bytes, library, name);
    truth_watched_late(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                     const char *name)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryGetManaged(dptr, bytes, library, name);
    truth_watch_late(&call);
    CUresult result = real.cuLibraryGetManaged(dptr, bytes, library, name);
    truth_watched_late(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuLibraryGetUnifiedFunction(fptr, library, symbol);
    truth_watch_late(&call);
    CUresult result = real.cuLibraryGetUnifiedFunction(fptr, library, symbol);
    truth_watched_late(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuKernelGetFunction(pFunc, kernel);
    truth_watch_late(&call);
    CUresult result = real.cuKernelGetFunction(pFunc, kernel);
    truth_watched_late(&call);
    guard_leave();
    return result;
}
