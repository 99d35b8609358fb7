/* SPDX-License-Identifier: MIT
 *
 * Modules and libraries: variables and code that take device memory while they are loaded, in
 * blocks that modules share among themselves. A library becomes a module in each context that asks
 * for one. Called under the driver's lock.
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
    STAILQ_HEAD(, module_variable) variables;
    uint64_t code_start, code_bytes;
    struct block *code_block;
    LIST_ENTRY(CUmod_st) of_context;
};

struct CUlib_st {
    struct handle handle;
    char *image; /* a copy; of a binary, its first bytes */
};

/* 2: the device is full. 200: no image. */
CUresult module_load(CUcontext context, const char *image, CUmodule *module);
void module_unload(CUmodule module);
void module_end_context(CUcontext context);
const struct memory *module_find(CUmodule module, const char *name); /* NULL: no such variable */

CUlibrary module_open_library(const char *image); /* NULL: no memory */
void module_close_library(CUlibrary library);
CUresult module_of_library(CUlibrary library, CUcontext context, CUmodule *module);

/* The file as a text of its own, for the caller to free. NULL: there is none. */
char *module_read_file(const char *path);

#endif
