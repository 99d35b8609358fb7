/* SPDX-License-Identifier: MIT
 *
 * Kernels, of which there is no code to run: a library's, which is one of every context, and a
 * module's, its function in one. Launching one brings what it is part of into the context, and
 * takes what it needs there. Called under the driver's lock.
 */
#ifndef SIMGPU_KERNEL_H
#define SIMGPU_KERNEL_H

#include "module.h"

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    char name[IMAGE_NAME_BYTES];
    struct overhead_needs needs;
    LIST_ENTRY(CUfunc_st) of_module;
};

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    char name[IMAGE_NAME_BYTES];
    LIST_ENTRY(CUkern_st) of_library;
};

/* 500: there is no such kernel. 200: a library without an image. 2: no memory. */
CUresult kernel_of_module(CUmodule module, const char *name, CUfunction *function);
CUresult kernel_of_library(CUlibrary library, const char *name, CUkernel *kernel);

/* The kernel's function in a context, into which its library is loaded if it is not yet.
 *   2: the device is full. */
CUresult kernel_in_context(CUkernel kernel, CUcontext context, CUfunction *function);

/* The function that a handle means, which may be a kernel's: in that context.
 *   400: none, or one of another context. */
CUresult kernel_find(CUfunction handle, CUcontext context, CUfunction *function);

/* 2: the device is full. */
CUresult kernel_launch(CUfunction function);

void kernel_end_module(CUmodule module);
void kernel_end_library(CUlibrary library);

#endif
