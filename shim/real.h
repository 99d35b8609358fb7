/* SPDX-License-Identifier: MIT
 *
 * The driver's own functions, typed: real.<symbol>. None is ever NULL: one that the driver lacks
 * answers CUDA_ERROR_NOT_FOUND, so a hook need not ask.
 *
 * Resolved without a lock and without the loader's error state, since it can happen in any
 * constructor and inside dlsym. Any thread.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "cuda_api.h"

#include <stdatomic.h>
#include <stdbool.h>

#define REAL_DRIVER "libcuda.so.1"

struct real {
#define HOOK(_symbol, _pfn, _room, _role, _text) PFN_##_pfn _symbol;
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) PFN_##_pfn _symbol;
#include "gpulimit/tbl/calls.def"
};

extern struct real real;
extern atomic_bool real_is_resolved;

typedef void (*real_function)(void);

/* Stands for every function that the driver lacks. */
CUresult real_absent(void);

/* Finds the driver among the loaded objects and resolves its functions. Returns false if it is not
 * loaded (yet): this library never loads it. */
bool real_resolve(void);

static inline bool real_ready(void)
{
    /* Acquire pairs with the release in real_resolve: the pointers are all there. */
    return atomic_load_explicit(&real_is_resolved, memory_order_acquire) || real_resolve();
}

#define real_has(_symbol) ((real_function)real._symbol != (real_function)real_absent)

#endif
