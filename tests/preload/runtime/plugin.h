/* SPDX-License-Identifier: MIT
 *
 * A library that uses the CUDA runtime: built once for each runtime, and once that names none. What
 * it shows to whoever opens it is one table, "plugin".
 */
#ifndef TESTS_PRELOAD_RUNTIME_PLUGIN_H
#define TESTS_PRELOAD_RUNTIME_PLUGIN_H

#include <stddef.h>

/* The functions of runtime.def with one form for all: each returns the runtime's answer. */
enum plugin_call {
#define RUNTIME(_symbol, _text) PLUGIN_##_symbol,
#include "gpulimit/tbl/runtime.def"
    PLUGIN_CALLS
};

struct plugin {
    /* Allocates bytes (of arrays, a multiple of 4096), or frees. pool may be NULL but for those
     * that take from one. */
    int (*call)(enum plugin_call call, void **address, size_t bytes, void *pool);
    int (*jump)(void **address, size_t bytes); /* cudaMalloc, called as the last thing, by a jump */
    unsigned (*calls)(void); /* of the runtime that this library is bound to; NULL: of none */
    void *(*look_up)(void *handle, const char *name); /* dlsym, called from here */
    void *(*look_up_version)(void *handle, const char *name, const char *version);
};

#endif
