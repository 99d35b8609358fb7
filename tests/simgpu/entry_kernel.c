// SPDX-License-Identifier: MIT
//
// Kernels: found in modules and libraries, and launched.

#include "kernel.h"
#include "process.h"

#define LAUNCH_THREADS 1024u /* the most of a block */

/* ---- found ---- */

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    CUresult result = process_enter(SYMBOL_cuModuleGetFunction, PROCESS_SAFE);

    if (result)
        return result;
    if (!hfunc || !name)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(hmod, HANDLE_MODULE))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    return process_leave(kernel_of_module(hmod, name, hfunc));
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    CUresult result = process_enter(SYMBOL_cuLibraryGetKernel, PROCESS_SAFE);

    if (result)
        return result;
    if (!pKernel || !name)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(library, HANDLE_LIBRARY))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    return process_leave(kernel_of_library(library, name, pKernel));
}

static CUresult kernel_get_function(CUfunction *function, CUkernel kernel)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    return function ? kernel_in_context(kernel, context, function) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    CUresult result = process_enter(SYMBOL_cuKernelGetFunction, PROCESS_SAFE);

    return result ? result : process_leave(kernel_get_function(pFunc, kernel));
}

static CUresult func_load(CUfunction handle)
{
    CUcontext context;
    CUfunction function;
    CUresult result = context_current(&context);

    return result ? result : kernel_find(handle, context, &function);
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    CUresult result = process_enter(SYMBOL_cuFuncLoad, PROCESS_SAFE);

    return result ? result : process_leave(func_load(function));
}

/* ---- launched ---- */

static CUresult launch(CUfunction handle, const CUlaunchConfig *config, bool per_thread)
{
    CUfunction function;
    CUstream stream;
    CUresult result = stream_find(config->hStream, per_thread, &stream);

    if (result == CUDA_SUCCESS)
        result = kernel_find(handle, stream->context, &function);
    if (result)
        return result;
    if (!config->gridDimX || !config->gridDimY || !config->gridDimZ || !config->blockDimX ||
        !config->blockDimY || !config->blockDimZ ||
        (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ > LAUNCH_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    /* A captured one loads its code, and takes no more: graphs here have no kernels. */
    return stream->capture ? CUDA_SUCCESS : kernel_launch(function);
}

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ,
                                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
                                void **extra)
{
    CUresult result = process_enter(SYMBOL_cuLaunchKernel, PROCESS_SAFE);
    CUlaunchConfig config = {gridDimX,  gridDimY,       gridDimZ, blockDimX, blockDimY,
                             blockDimZ, sharedMemBytes, hStream,  NULL,      0};

    (void)kernelParams; /* for the code that there is not */
    (void)extra;
    return result ? result : process_leave(launch(f, &config, false));
}

CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                     unsigned int gridDimZ, unsigned int blockDimX,
                                     unsigned int blockDimY, unsigned int blockDimZ,
                                     unsigned int sharedMemBytes, CUstream hStream,
                                     void **kernelParams, void **extra)
{
    CUresult result = process_enter(SYMBOL_cuLaunchKernel_ptsz, PROCESS_SAFE);
    CUlaunchConfig config = {gridDimX,  gridDimY,       gridDimZ, blockDimX, blockDimY,
                             blockDimZ, sharedMemBytes, hStream,  NULL,      0};

    (void)kernelParams;
    (void)extra;
    return result ? result : process_leave(launch(f, &config, true));
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    CUresult result = process_enter(SYMBOL_cuLaunchKernelEx, PROCESS_SAFE);

    (void)kernelParams;
    (void)extra;
    if (result)
        return result;
    return process_leave(config ? launch(f, config, false) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                       void **kernelParams, void **extra)
{
    CUresult result = process_enter(SYMBOL_cuLaunchKernelEx_ptsz, PROCESS_SAFE);

    (void)kernelParams;
    (void)extra;
    if (result)
        return result;
    return process_leave(config ? launch(f, config, true) : CUDA_ERROR_INVALID_VALUE);
}
