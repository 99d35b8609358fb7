/* SPDX-License-Identifier: MIT
 *
 * Resolves real.<symbol>, see real.h.
 */
#include "real.h"

#include "loaded.h"

#include <dlfcn.h>

struct real real = {
#define HOOK(_symbol, _pfn, _room, _role, _text) ._symbol = (PFN_##_pfn)(real_function)real_absent,
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) ._symbol = (PFN_##_pfn)(real_function)real_absent,
#include "gpulimit/tbl/calls.def"
};
atomic_bool real_is_resolved;

CUresult real_absent(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

static real_function real_find(const struct loaded_object *driver, const char *name)
{
    real_function found = loaded_find_symbol(driver, name);
    return found ? found : (real_function)real_absent;
}

bool real_resolve(void)
{
    struct loaded_object driver;
    if (!loaded_find_object(REAL_DRIVER, &driver))
        return false;
    /* The driver is there, so this opens nothing: it keeps the driver there for as long as we point
     * into it. */
    (void)dlopen(REAL_DRIVER, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    /* Two threads may be here at once. They store the same addresses, so no lock is needed; a lock
     * could meet the loader's own in the other order. */
#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    __atomic_store_n(&real._symbol, (PFN_##_pfn)real_find(&driver, #_symbol), __ATOMIC_RELAXED);
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text)                                                                 \
    __atomic_store_n(&real._symbol, (PFN_##_pfn)real_find(&driver, #_symbol), __ATOMIC_RELAXED);
#include "gpulimit/tbl/calls.def"
    /* Release pairs with the acquire in real_ready. */
    atomic_store_explicit(&real_is_resolved, true, memory_order_release);
    return true;
}
