/* SPDX-License-Identifier: MIT
 *
 * Memory that a setting of a context lets kernels take later: a heap, a printf buffer. Nobody can
 * refuse it then, so it is charged as overhead from the setting on, until a look finds it taken, a
 * lower setting, or the end of the context. See limit.h for threads and forks.
 */
#ifndef SHIM_LIMIT_PROMISES_H
#define SHIM_LIMIT_PROMISES_H

#include "limit.h"

/* A context's settings are numbered below this; it is a power of two, and contexts are aligned to
 * it. */
enum { LIMIT_SETTINGS = 8 };

/* The driver has made a setting, by which kernels can take so much more, or less if negative.
 * setting: a small number that tells the context's settings apart. */
void limit_promise(unsigned device, uint64_t context, unsigned setting, int64_t change);

#endif
