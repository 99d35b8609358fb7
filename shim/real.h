/* SPDX-License-Identifier: MIT
 *
 * The driver's and NVML's own functions, typed: real.<symbol>. None is ever NULL: one that its
 * library lacks answers so in that library's words (CUDA_ERROR_NOT_FOUND,
 * NVML_ERROR_FUNCTION_NOT_FOUND), so a hook need not ask.
 *
 * Resolved without a lock and without the loader's error state, since it can happen in any
 * constructor and inside dlsym. The two libraries come separately, each whenever it is loaded. Any
 * thread.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "cuda_api.h"
#include "nvml_api.h"

#include <stdatomic.h>
#include <stdbool.h>

#define REAL_DRIVER "libcuda.so.1"
#define REAL_NVML   "libnvidia-ml.so.1"

/* Which of the two libraries a row of the tables is of: "nvml..." or "cu...". */
#define REAL_IS_NVML(_name) ((_name)[0] == 'n')

struct real {
#define HOOK(_symbol, _pfn, _room, _role, _text) PFN_##_pfn _symbol;
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) PFN_##_pfn _symbol;
#include "gpulimit/tbl/calls.def"
};

extern struct real real;
extern atomic_bool real_is_resolved, real_nvml_is_resolved;

typedef void (*real_function)(void);

/* Stand for every function that the driver or NVML lacks. */
CUresult real_absent(void);
nvmlReturn_t real_nvml_absent(void);

/* Find the library among the loaded objects and resolve its functions. Return false if it is not
 * loaded (yet): neither is loaded by this. */
bool real_resolve(void);
bool real_nvml_resolve(void);

static inline bool real_ready(void)
{
    /* Acquire pairs with the release in real_resolve: the pointers are all there. */
    return atomic_load_explicit(&real_is_resolved, memory_order_acquire) || real_resolve();
}

static inline bool real_nvml_ready(void)
{
    return atomic_load_explicit(&real_nvml_is_resolved, memory_order_acquire) ||
           real_nvml_resolve();
}

/* NVML for our own questions: the one that is loaded, else it is loaded, which is tried once a
 * process. Returns false if there is none, and also while another thread is loading it: nobody
 * waits here, since that thread may need the loader's lock, which the caller may hold. errno is
 * left as it was. Not inside dlsym. */
bool real_open_nvml(void);

static inline bool real_is_absent(real_function function)
{
    return function == (real_function)real_absent || function == (real_function)real_nvml_absent;
}

#define real_has(_symbol) (!real_is_absent((real_function)real._symbol))

#endif
