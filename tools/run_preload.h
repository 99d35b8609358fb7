/* SPDX-License-Identifier: MIT
 *
 * Where libgpulimit.so is, and how it comes into LD_PRELOAD. Only gpulimit-run includes this.
 */
#ifndef GPULIMIT_TOOLS_RUN_PRELOAD_H
#define GPULIMIT_TOOLS_RUN_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

/* Finds the library: `given` if not NULL, else where this program's own installation or build tree
 * has it. True: `found` is absolute, and the dynamic linker will take it as one name. False: it has
 * been said on stderr why not. */
bool preload_find(const char *given, char found[PATH_MAX]);

/* The new value of LD_PRELOAD: the library before all that is there, unless it is there already.
 * `old` may be NULL. For the caller to free(); NULL when memory runs out. */
char *preload_join(const char *library, const char *old);

#endif
