/* SPDX-License-Identifier: MIT
 *
 * Which CUDA runtime a caller's call is for. A process can have several (one of each major version,
 * or one opened RTLD_LOCAL for a plug-in alone); without our label a call would have reached the
 * caller's own, so there it must go.
 *
 * Any thread, after fork, in constructors and destructors. Not inside dlsym. The first call from
 * each object takes the loader's list's lock for some microseconds, later ones no lock (before
 * glibc 2.35: each one). Where several runtimes could be meant, the first may also take the
 * loader's own lock. errno is kept.
 */
#ifndef SHIM_RUNTIME_H
#define SHIM_RUNTIME_H

#include "api.h"

typedef void (*runtime_function)(void);

/* Returns the function of runtime.def that a call with this return address would reach without us;
 * NULL if there is no runtime. */
runtime_function runtime_find(enum api api, const void *caller);

#endif
