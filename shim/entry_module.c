/* SPDX-License-Identifier: MIT
 *
 * Code, loaded and unloaded. Nothing says beforehand what it takes, and libraries take it only when
 * they are first used, so nothing is refused. limit_code_moved is where what it took is to be
 * measured; today it is told.
 */
#include "driver.h"
#include "entry.h"
#include "limit_overhead.h"

static CUresult entry_moved(CUresult result, enum api api)
{
    struct driver_place place;
    if (result == CUDA_SUCCESS && driver_here(&place))
        limit_code_moved(place.device, api);
    return entry_pass(result);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    if (!entry_enter())
        return real.cuModuleLoad(module, fname);
    return entry_moved(real.cuModuleLoad(module, fname), API_cuModuleLoad);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!entry_enter())
        return real.cuModuleLoadData(module, image);
    return entry_moved(real.cuModuleLoadData(module, image), API_cuModuleLoadData);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    if (!entry_enter())
        return real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
    return entry_moved(real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues),
                       API_cuModuleLoadDataEx);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    if (!entry_enter())
        return real.cuModuleLoadFatBinary(module, fatCubin);
    return entry_moved(real.cuModuleLoadFatBinary(module, fatCubin), API_cuModuleLoadFatBinary);
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    if (!entry_enter())
        return real.cuModuleUnload(hmod);
    return entry_moved(real.cuModuleUnload(hmod), API_cuModuleUnload);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    if (!entry_enter())
        return real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                      libraryOptions, libraryOptionValues, numLibraryOptions);
    return entry_moved(real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues,
                                              numJitOptions, libraryOptions, libraryOptionValues,
                                              numLibraryOptions),
                       API_cuLibraryLoadData);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                       CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    if (!entry_enter())
        return real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
                                          numJitOptions, libraryOptions, libraryOptionValues,
                                          numLibraryOptions);
    return entry_moved(real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
                                                  numJitOptions, libraryOptions,
                                                  libraryOptionValues, numLibraryOptions),
                       API_cuLibraryLoadFromFile);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    if (!entry_enter())
        return real.cuLibraryUnload(library);
    return entry_moved(real.cuLibraryUnload(library), API_cuLibraryUnload);
}
