/* SPDX-License-Identifier: MIT
 *
 * Modules and libraries: variables and code that take device memory while they are loaded, in
 * blocks that modules share among themselves. A library becomes a module in each context that asks
 * for one, or in all of them at once with CUDA_MODULE_LOADING=EAGER. Called under the driver's
 * lock.
 */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

#include "context.h"
#include "image.h"
#include "memory.h"

struct module_variable {
    char name[IMAGE_NAME_BYTES];
    struct memory *memory;
    STAILQ_ENTRY(module_variable) of_module;
};

struct CUmod_st {
    struct handle handle;
    CUcontext context;
    CUlibrary library; /* NULL: loaded by itself */
    char *image;       /* a copy; of a binary, its first bytes */
    STAILQ_HEAD(, module_variable) variables;
    uint64_t code_start, code_bytes;
    struct block *code_block;
    LIST_HEAD(, CUfunc_st) functions; /* those that were asked for */
    LIST_ENTRY(CUmod_st) of_context;
};

struct CUlib_st {
    struct handle handle;
    char *image;                    /* as a module's */
    LIST_HEAD(, CUkern_st) kernels; /* those that were asked for */
    LIST_ENTRY(CUlib_st) of_process;
};

/* 2: the device is full. 200: no image. */
CUresult module_load(CUcontext context, const char *image, CUmodule *module);
void module_unload(CUmodule module);

/* Loads the libraries that are to be everywhere, where libraries are loaded eagerly. 2: the device
 * is full. */
CUresult module_start_context(CUcontext context);
void module_end_context(CUcontext context);
const struct memory *module_find(CUmodule module, const char *name); /* NULL: no such variable */

/* 2: no memory. Where libraries are loaded eagerly: 2: a device is full. 200: no image. */
CUresult module_open_library(const char *image, CUlibrary *library);
void module_close_library(CUlibrary library);
CUresult module_of_library(CUlibrary library, CUcontext context, CUmodule *module);

/* The file as a text of its own, for the caller to free. NULL: there is none. */
char *module_read_file(const char *path);

#endif
