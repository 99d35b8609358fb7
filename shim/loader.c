/* SPDX-License-Identifier: MIT
 *
 * Finds the functions of loader.h. Our own exports are the first dlsym in the process, so libc's
 * has to be found by hand; asked from here, it knows the next one after us.
 */
#include "loader.h"

#include "loaded.h"

#include <dlfcn.h>
#include <stddef.h>

/* The two ends of this object, as the linker laid it. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* Threads that come at once store the same values. */
loader_dlsym_function loader_dlsym;
loader_dlvsym_function loader_dlvsym;

static void loader_find(void)
{
    struct loaded_object libc;
    if (!loaded_find_early("libc.so.6", &libc))
        return;
    loader_dlsym_function ask = (loader_dlsym_function)loaded_find_symbol(&libc, "dlsym");
    if (!ask && loaded_find_early("libdl.so.2", &libc)) /* before glibc 2.34 */
        ask = (loader_dlsym_function)loaded_find_symbol(&libc, "dlsym");
    if (!ask)
        return;
    __atomic_store_n(&loader_dlvsym, (loader_dlvsym_function)ask(RTLD_NEXT, "dlvsym"),
                     __ATOMIC_RELAXED);
    /* Last, with release: whoever sees this one sees both. */
    __atomic_store_n(&loader_dlsym, (loader_dlsym_function)ask(RTLD_NEXT, "dlsym"),
                     __ATOMIC_RELEASE);
}

void loader_ready(void)
{
    if (!__atomic_load_n(&loader_dlsym, __ATOMIC_ACQUIRE))
        loader_find();
}

bool loader_is_own(const void *address)
{
    return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

const struct link_map *loader_map_of(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}
