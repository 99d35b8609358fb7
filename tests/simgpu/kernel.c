// SPDX-License-Identifier: MIT
//
// Kernels; see kernel.h.

#include "kernel.h"

#include <string.h>

static bool kernel_fits_name(const char *name)
{
    return strlen(name) < IMAGE_NAME_BYTES;
}

CUresult kernel_of_module(CUmodule module, const char *name, CUfunction *function)
{
    struct overhead_needs needs;
    CUfunction found;

    LIST_FOREACH(found, &module->functions, of_module)
    if (strcmp(found->name, name) == 0) {
        *function = found;
        return CUDA_SUCCESS;
    }
    if (!kernel_fits_name(name) ||
        !image_find_kernel(image_recognize(module->image), module->image, name, &needs))
        return CUDA_ERROR_NOT_FOUND;
    found = handle_create(HANDLE_FUNCTION, sizeof *found);
    if (!found)
        return CUDA_ERROR_OUT_OF_MEMORY;
    found->module = module;
    strcpy(found->name, name);
    found->needs = needs;
    LIST_INSERT_HEAD(&module->functions, found, of_module);
    *function = found;
    return CUDA_SUCCESS;
}

CUresult kernel_of_library(CUlibrary library, const char *name, CUkernel *kernel)
{
    enum image_kind kind = image_recognize(library->image);
    struct overhead_needs needs;
    CUkernel found;

    LIST_FOREACH(found, &library->kernels, of_library)
    if (strcmp(found->name, name) == 0) {
        *kernel = found;
        return CUDA_SUCCESS;
    }
    if (kind == IMAGE_NONE)
        return CUDA_ERROR_INVALID_IMAGE;
    if (!kernel_fits_name(name) || !image_find_kernel(kind, library->image, name, &needs))
        return CUDA_ERROR_NOT_FOUND;
    found = handle_create(HANDLE_KERNEL, sizeof *found);
    if (!found)
        return CUDA_ERROR_OUT_OF_MEMORY;
    found->library = library;
    strcpy(found->name, name);
    LIST_INSERT_HEAD(&library->kernels, found, of_library);
    *kernel = found;
    return CUDA_SUCCESS;
}

CUresult kernel_in_context(CUkernel kernel, CUcontext context, CUfunction *function)
{
    CUmodule module;
    CUresult result = module_of_library(kernel->library, context, &module);

    return result ? result : kernel_of_module(module, kernel->name, function);
}

CUresult kernel_find(CUfunction handle, CUcontext context, CUfunction *function)
{
    if (handle_is(handle, HANDLE_KERNEL))
        return kernel_in_context((CUkernel)(void *)handle, context, function);
    *function = handle;
    return handle_is(handle, HANDLE_FUNCTION) && handle->module->context == context
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kernel_launch(CUfunction function)
{
    CUcontext context = function->module->context;

    return overhead_launch(&context->overhead, &function->needs,
                           context->limit[CU_LIMIT_MALLOC_HEAP_SIZE],
                           context->limit[CU_LIMIT_PRINTF_FIFO_SIZE])
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void kernel_end_module(CUmodule module)
{
    CUfunction function;

    while ((function = LIST_FIRST(&module->functions)) != NULL) {
        LIST_REMOVE(function, of_module);
        handle_destroy(&function->handle);
    }
}

void kernel_end_library(CUlibrary library)
{
    CUkernel kernel;

    while ((kernel = LIST_FIRST(&library->kernels)) != NULL) {
        LIST_REMOVE(kernel, of_library);
        handle_destroy(&kernel->handle);
    }
}
