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
#include "start.h"

static bool entry_loads_eagerly(void)
{
    CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
    return real.cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING;
}

/* A call that may load a library into the contexts of all devices. The current one's is measured
 * as for a module; of the others it is only seen what they have more than before. */
struct library_call {
    struct truth_call here;
    bool is_eager;
    uint64_t overheads[BUDGET_DEVICES];
};

static void entry_look_elsewhere(unsigned here)
{
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        if (device != here && start_knows_device(device))
            truth_look(device);
    }
}

static bool entry_begin_library(struct library_call *call, const void *code, enum api api)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    uint64_t least = 0;
    call->is_eager = entry_loads_eagerly();
    if (call->is_eager && driver_here(&place) && code)
        (void)image_least_bytes(code, &least);
    least = least > BLOCKS_BYTES ? least - BLOCKS_BYTES : 0; /* one block may have room already */
    if (!truth_begin(&call->here, LIMIT_CODE, place.device, api, least))
        return false;
    if (call->is_eager)
        entry_look_elsewhere(place.device); /* what kernels have taken is not the call's */
    for (unsigned device = 0; device < BUDGET_DEVICES && call->is_eager; device++)
        call->overheads[device] = limit_overhead(device);
    return true;
}

/* Whether another device is over its limit by the library, and then a ticket to give up. */
static bool entry_is_too_much_elsewhere(const struct library_call *call, struct ticket *ticket)
{
    unsigned here = call->here.ticket.device;
    entry_look_elsewhere(here);
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        uint64_t before = call->overheads[device], now = limit_overhead(device);
        if (device == here || now <= before || budget_used(device) <= budget_limit(device))
            continue;
        *ticket = (struct ticket){.what = LIMIT_CODE,
                                  .device = device,
                                  .api = call->here.ticket.api,
                                  .bytes = now - before};
        return true;
    }
    return false;
}

static CUresult entry_end_library(struct library_call *call, CUresult result, CUlibrary *library,
                                  CUlibrary before)
{
    struct ticket elsewhere;
    if (result != CUDA_SUCCESS) {
        truth_cancel(&call->here, result);
        return entry_pass(result);
    }
    bool fits_here = truth_settle(&call->here);
    if (fits_here && !(call->is_eager && entry_is_too_much_elsewhere(call, &elsewhere)))
        return entry_pass(result);
    real.cuLibraryUnload(*library);
    *library = before; /* untouched, as the driver leaves it when it has no memory */
    entry_look_elsewhere(call->here.ticket.device);
    if (fits_here) {
        truth_look(call->here.ticket.device);
        limit_give_up(&elsewhere);
    } else {
        truth_give_up(&call->here);
    }
    return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    struct library_call call;
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
    struct library_call call;
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
    truth_forget_handles();
    truth_watched(&call);
    entry_look_elsewhere(place.device);
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
    truth_watched_late(&call, library, result, API_cuLibraryGetModule);
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
    truth_watched_late(&call, library, result, API_cuLibraryGetGlobal);
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
    truth_watched_late(&call, library, result, API_cuLibraryGetManaged);
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
    truth_watched_late(&call, library, result, API_cuLibraryGetUnifiedFunction);
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
    truth_watched_late(&call, kernel, result, API_cuKernelGetFunction);
    guard_leave();
    return result;
}
