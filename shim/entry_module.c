/* SPDX-License-Identifier: MIT
 *
 * Modules: code and its variables, loaded into the current context and unloaded. What a module
 * takes is measured when it is there, and one that does not fit is unloaded again; one whose
 * variables alone do not fit is refused before.
 */
#include "blocks.h"
#include "driver.h"
#include "entry.h"
#include "image_size.h"

static bool entry_begin_module(struct truth_call *call, const void *image, enum api api)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    uint64_t least = 0;
    (void)driver_here(&place); /* without a context nobody pays: the driver has its own answer */
    if (image)
        (void)image_least_bytes(image, &least);
    /* One block may have room already. */
    least = least > BLOCKS_BYTES ? least - BLOCKS_BYTES : 0;
    return truth_begin(call, LIMIT_CODE, place.device, api, least);
}

static CUresult entry_end_module(struct truth_call *call, CUresult result, CUmodule *module,
                                 CUmodule before)
{
    if (result != CUDA_SUCCESS) {
        truth_cancel(call, result);
    } else if (!truth_settle(call)) {
        real.cuModuleUnload(*module);
        truth_give_up(call);
        *module = before; /* untouched, as the driver leaves it when it has no memory */
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return entry_pass(result);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleLoad(module, fname);
    if (!entry_begin_module(&call, NULL, API_cuModuleLoad))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmodule before = module ? *module : NULL;
    return entry_end_module(&call, real.cuModuleLoad(module, fname), module, before);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleLoadData(module, image);
    if (!entry_begin_module(&call, image, API_cuModuleLoadData))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmodule before = module ? *module : NULL;
    return entry_end_module(&call, real.cuModuleLoadData(module, image), module, before);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
    if (!entry_begin_module(&call, image, API_cuModuleLoadDataEx))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmodule before = module ? *module : NULL;
    return entry_end_module(
        &call, real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues), module,
        before);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleLoadFatBinary(module, fatCubin);
    if (!entry_begin_module(&call, fatCubin, API_cuModuleLoadFatBinary))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUmodule before = module ? *module : NULL;
    return entry_end_module(&call, real.cuModuleLoadFatBinary(module, fatCubin), module, before);
}

/* Of any context: the current one's device is as good a guess as any where cards are read. */
CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    struct driver_place place = {.device = BUDGET_DEVICES};
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleUnload(hmod);
    (void)driver_here(&place);
    truth_watch(&call, LIMIT_CODE, place.device);
    CUresult result = real.cuModuleUnload(hmod);
    truth_forget_handles();
    truth_watched(&call);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuModuleGetFunction(hfunc, hmod, name);
    truth_watch_late(&call);
    CUresult result = real.cuModuleGetFunction(hfunc, hmod, name);
    truth_watched_late(&call, hmod, result, API_cuModuleGetFunction);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    struct truth_call call;
    if (!entry_enter())
        return real.cuFuncLoad(function);
    truth_watch_late(&call);
    CUresult result = real.cuFuncLoad(function);
    truth_watched_late(&call, function, result, API_cuFuncLoad);
    guard_leave();
    return result;
}
