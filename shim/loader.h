/* SPDX-License-Identifier: MIT
 *
 * The next dlsym and dlvsym after ours: libc's, or those of another preloaded library.
 *
 * Any thread, also inside dlsym and constructors. No lock, no memory is allocated.
 */
#ifndef SHIM_LOADER_H
#define SHIM_LOADER_H

#include <link.h>
#include <stdbool.h>

typedef void *(*loader_dlsym_function)(void *handle, const char *name);
typedef void *(*loader_dlvsym_function)(void *handle, const char *name, const char *version);

/* NULL before loader_ready, which must be called first: entry_dlsym.c jumps through them. Called
 * from this library with RTLD_NEXT, they look in what is loaded after it. */
extern loader_dlsym_function loader_dlsym __attribute__((visibility("hidden")));
extern loader_dlvsym_function loader_dlvsym __attribute__((visibility("hidden")));

void loader_ready(void);

/* Whether an address lies in this library itself. */
bool loader_is_own(const void *address);

/* The loader's own record of the object that an address lies in, which is also a handle for dlsym.
 * NULL if there is none. It takes the loader's lock. */
const struct link_map *loader_map_of(const void *address);

#endif
