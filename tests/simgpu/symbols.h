/* SPDX-License-Identifier: MIT
 *
 * symbols.def as data: what is exported, under which names and versions cuGetProcAddress finds it,
 * how often it was called, and which call of it is to fail next. Safe from any thread.
 */
#ifndef SIMGPU_SYMBOLS_H
#define SIMGPU_SYMBOLS_H

#include "driver.h"

#include <stdbool.h>
#include <stdint.h>

enum symbol {
#define SYMBOL(_symbol, _base, _version, _per_thread) SYMBOL_##_symbol,
#include "symbols.def"
    SYMBOLS
};

/* What cuGetProcAddress_v2 answers. version: negative means any. */
CUdriverProcAddressQueryResult symbols_find(const char *base, int version, bool per_thread,
                                            void **address);

/* Counts a call. Returns the result that it is to fail with, else CUDA_SUCCESS. */
CUresult symbols_count_call(enum symbol symbol);

uint64_t symbols_calls(const char *name); /* 0 for unknown names */
void symbols_fail_after(const char *name, unsigned calls_before, CUresult result);

#endif
