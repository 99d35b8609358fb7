/* SPDX-License-Identifier: MIT
 *
 * Resolves real.<symbol>, see real.h.
 */
#include "real.h"

#include "loaded.h"

#include <dlfcn.h>
#include <errno.h>

#define REAL_ABSENT(_name)                                                                         \
    (REAL_IS_NVML(_name) ? (real_function)real_nvml_absent : (real_function)real_absent)

struct real real = {
#define HOOK(_symbol, _pfn, _room, _role, _text) ._symbol = (PFN_##_pfn)REAL_ABSENT(#_symbol),
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) ._symbol = (PFN_##_pfn)REAL_ABSENT(#_symbol),
#include "gpulimit/tbl/calls.def"
};
atomic_bool real_is_resolved, real_nvml_is_resolved;

CUresult real_absent(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

nvmlReturn_t real_nvml_absent(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* Two threads may be here at once. They store the same addresses, so no lock is needed; a lock
 * could meet the loader's own in the other order. */
static void real_find(const struct loaded_object *library, bool is_nvml)
{
#define REAL_FIND(_symbol, _pfn)                                                                   \
    if (REAL_IS_NVML(#_symbol) == is_nvml) {                                                       \
        real_function found = loaded_find_symbol(library, #_symbol);                               \
        __atomic_store_n(&real._symbol, (PFN_##_pfn)(found ? found : REAL_ABSENT(#_symbol)),       \
                         __ATOMIC_RELAXED);                                                        \
    }
#define HOOK(_symbol, _pfn, _room, _role, _text) REAL_FIND(_symbol, _pfn)
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) REAL_FIND(_symbol, _pfn)
#include "gpulimit/tbl/calls.def"
}

static bool real_resolve_in(const char *name, bool is_nvml, atomic_bool *is_resolved)
{
    struct loaded_object library;
    if (!loaded_find_object(name, &library))
        return false;
    /* It is there, so this opens nothing: it keeps it there for as long as we point into it. */
    (void)dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    real_find(&library, is_nvml);
    /* Release pairs with the acquire in real_ready and real_nvml_ready. */
    atomic_store_explicit(is_resolved, true, memory_order_release);
    return true;
}

bool real_resolve(void)
{
    return real_resolve_in(REAL_DRIVER, false, &real_is_resolved);
}

bool real_nvml_resolve(void)
{
    return real_resolve_in(REAL_NVML, true, &real_nvml_is_resolved);
}

bool real_open_nvml(void)
{
    static atomic_int state;
    enum { UNTRIED, OPENING, TRIED };
    int untried = UNTRIED;
    if (atomic_compare_exchange_strong(&state, &untried, OPENING)) {
        int saved = errno;
        /* Also where it is loaded already: that may be going on in another thread just now, and
         * only the loader knows when it is done. */
        if (!dlopen(REAL_NVML, RTLD_NOW | RTLD_LOCAL))
            (void)dlerror(); /* the program is not to find an error of ours */
        errno = saved;
        atomic_store(&state, TRIED);
    }
    return atomic_load(&state) == TRIED && real_nvml_ready();
}
