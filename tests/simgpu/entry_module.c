// SPDX-License-Identifier: MIT
//
// Modules and libraries: loaded, asked for their variables, unloaded.

#include "module.h"
#include "process.h"

#include <stdlib.h>

/* ---- modules ---- */

static CUresult module_take(CUmodule *module, const void *image)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    return module_load(context, image, module);
}

static CUresult module_take_file(CUmodule *module, const char *path)
{
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    char *image = module_read_file(path);
    if (!image)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = module_take(module, image);
    free(image);
    return result;
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    CUresult result = process_enter(SYMBOL_cuModuleLoad, PROCESS_SAFE);

    return result ? result : process_leave(module_take_file(module, fname));
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result = process_enter(SYMBOL_cuModuleLoadData, PROCESS_SAFE);

    return result ? result : process_leave(module_take(module, image));
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    CUresult result = process_enter(SYMBOL_cuModuleLoadDataEx, PROCESS_SAFE);

    (void)numOptions; /* for the compiler */
    (void)options;
    (void)optionValues;
    return result ? result : process_leave(module_take(module, image));
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    CUresult result = process_enter(SYMBOL_cuModuleLoadFatBinary, PROCESS_SAFE);

    return result ? result : process_leave(module_take(module, fatCubin));
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult result = process_enter(SYMBOL_cuModuleGetLoadingMode, PROCESS_SAFE);

    if (result)
        return result;
    if (!mode)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *mode = process.config.loads_eagerly ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    CUresult result = process_enter(SYMBOL_cuModuleUnload, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(hmod, HANDLE_MODULE))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    if (hmod->library)
        return process_leave(CUDA_ERROR_NOT_PERMITTED);
    module_unload(hmod);
    return process_leave(CUDA_SUCCESS);
}

/* ---- variables ---- */

struct module_answer {
    uint64_t start, bytes;
};

static CUresult module_ask(CUmodule module, const char *name, bool has_output,
                           struct module_answer *answer)
{
    if (!handle_is(module, HANDLE_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !has_output)
        return CUDA_ERROR_INVALID_VALUE;
    const struct memory *memory = module_find(module, name);
    *answer = (struct module_answer){0};
    if (!memory)
        return CUDA_ERROR_NOT_FOUND;
    answer->start = memory->range.start;
    answer->bytes = memory->range.end - memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod,
                                   const char *name)
{
    CUresult result = process_enter(SYMBOL_cuModuleGetGlobal, PROCESS_SAFE);
    struct module_answer answer;

    if (result)
        return result;
    result = module_ask(hmod, name, dptr || bytes, &answer);
    if ((result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND) && dptr)
        *dptr = (CUdeviceptr_v1)answer.start;
    if ((result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND) && bytes)
        *bytes = (unsigned)answer.bytes;
    return process_leave(result);
}

/* A module's 500 comes with zeros, a library's leaves the outputs alone. */
static CUresult module_tell(CUdeviceptr *dptr, size_t *bytes, CUmodule module, const char *name)
{
    struct module_answer answer;
    CUresult result = module_ask(module, name, dptr || bytes, &answer);

    if (result && (result != CUDA_ERROR_NOT_FOUND || module->library))
        return result;
    if (dptr)
        *dptr = answer.start;
    if (bytes)
        *bytes = answer.bytes;
    return result;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                      const char *name)
{
    CUresult result = process_enter(SYMBOL_cuModuleGetGlobal_v2, PROCESS_SAFE);

    return result ? result : process_leave(module_tell(dptr, bytes, hmod, name));
}

/* ---- libraries ---- */

/* What the code is worth shows only when it is used, unless everything is loaded at once. */
static CUresult library_take(CUlibrary *library, const void *code)
{
    if (!library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    return module_open_library(code, library);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    CUresult result = process_enter(SYMBOL_cuLibraryLoadData, PROCESS_SAFE);

    (void)jitOptions; /* for the compiler, all of them */
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return result ? result : process_leave(library_take(library, code));
}

static CUresult library_take_file(CUlibrary *library, const char *path)
{
    if (!library || !path)
        return CUDA_ERROR_INVALID_VALUE;
    char *image = module_read_file(path);
    if (!image)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = library_take(library, image);
    free(image);
    return result;
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                       CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    CUresult result = process_enter(SYMBOL_cuLibraryLoadFromFile, PROCESS_SAFE);

    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return result ? result : process_leave(library_take_file(library, fileName));
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    CUresult result = process_enter(SYMBOL_cuLibraryUnload, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(library, HANDLE_LIBRARY))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    module_close_library(library);
    return process_leave(CUDA_SUCCESS);
}

static CUresult library_module(CUmodule *module, CUlibrary library)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!handle_is(library, HANDLE_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    return module ? module_of_library(library, context, module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    CUresult result = process_enter(SYMBOL_cuLibraryGetModule, PROCESS_SAFE);

    return result ? result : process_leave(library_module(pMod, library));
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    CUresult result = process_enter(SYMBOL_cuLibraryGetGlobal, PROCESS_SAFE);
    CUmodule module;

    if (result)
        return result;
    result = library_module(&module, library);
    return process_leave(result ? result : module_tell(dptr, bytes, module, name));
}

/* No image here has managed variables or unified functions. */
static CUresult library_lacks(const void *output, CUlibrary library, const char *name)
{
    CUmodule module;

    if (!output || !name)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = library_module(&module, library);
    return result ? result : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                     const char *name)
{
    CUresult result = process_enter(SYMBOL_cuLibraryGetManaged, PROCESS_SAFE);

    return result ? result
                  : process_leave(library_lacks(dptr ? (const void *)dptr : bytes, library, name));
}

CUresult CUDAAPI cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    CUresult result = process_enter(SYMBOL_cuLibraryGetUnifiedFunction, PROCESS_SAFE);

    return result ? result : process_leave(library_lacks(fptr, library, symbol));
}
