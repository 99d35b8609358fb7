/* SPDX-License-Identifier: MIT
 *
 * Asks the C library: see finder.h. Not by a reference to its function, weak as it may be: the
 * loader of an older C library would refuse the whole of ours.
 */
#include "finder.h"

#include "loaded.h"

#include <dlfcn.h>
#include <stddef.h>

#ifdef DLFO_EH_SEGMENT_TYPE

typedef __typeof__(_dl_find_object) *finder_function;

static finder_function finder_get(void)
{
    static finder_function function;
    static bool is_known;
    if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
        struct loaded_object libc;
        finder_function found = NULL;
        if (loaded_find_early("libc.so.6", &libc))
            found = (finder_function)loaded_find_symbol(&libc, "_dl_find_object");
        __atomic_store_n(&function, found, __ATOMIC_RELAXED);
        __atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&function, __ATOMIC_RELAXED);
}

bool finder_is_there(void)
{
    return finder_get() != NULL;
}

bool finder_find(uint64_t address, struct finder_object *object)
{
    struct dl_find_object found;
    finder_function find = finder_get();
    if (!find || find((void *)(uintptr_t)address, &found) != 0)
        return false;
    object->start = found.dlfo_map_start;
    object->table = found.dlfo_eh_frame;
    object->map = found.dlfo_link_map;
    return true;
}

#else

bool finder_is_there(void)
{
    return false;
}

bool finder_find(uint64_t address, struct finder_object *object)
{
    (void)address;
    (void)object;
    return false;
}

#endif
