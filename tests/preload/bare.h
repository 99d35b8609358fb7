/* SPDX-License-Identifier: MIT
 *
 * The loader's own dlsym and dlvsym, past the library's: what a program would get without it, to
 * hold its answers against. Any thread, once bare_find_loader has been called.
 */
#ifndef TESTS_PRELOAD_BARE_H
#define TESTS_PRELOAD_BARE_H

#include <stdbool.h>

/* Group fixture: finds the two. */
int bare_find_loader(void **state);

/* As dlsym and dlvsym; the one who asks is this executable. */
void *bare_dlsym(void *handle, const char *name);
void *bare_dlvsym(void *handle, const char *name, const char *version);

/* Handles of the driver and of NVML, which have to be loaded already. */
void *bare_driver(void);
void *bare_nvml(void);

/* Whether an address lies in the loaded object whose file has that name ("libgpulimit.so"). */
bool bare_lies_in(const void *address, const char *file);

#endif
