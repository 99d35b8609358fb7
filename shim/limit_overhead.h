/* SPDX-License-Identifier: MIT
 *
 * Memory that the driver takes for a context by a setting of it (cuCtxSetLimit) rather than for an
 * allocation: it counts as overhead, from the setting on, until a lower one or the end of the
 * context. See limit.h for threads and forks.
 *
 * With GPU_LIMIT_COUNT=allocations overhead does not count: limit_reserve_overhead then says yes to
 * anything.
 */
#ifndef SHIM_LIMIT_OVERHEAD_H
#define SHIM_LIMIT_OVERHEAD_H

#include "limit.h"

/* A context's settings are numbered below this; it is a power of two, and contexts are aligned to
 * it. */
enum { LIMIT_SETTINGS = 8 };

/* Reserves room for a setting that will take so much more. Returns false if the limit refuses it,
 * as limit_reserve. */
bool limit_reserve_overhead(struct ticket *ticket, unsigned device, uint64_t context, enum api api,
                            uint64_t bytes);

/* The driver has made the setting, and it takes so much more, or less if negative. setting: a small
 * number that tells the context's settings apart. The ticket is used up. */
void limit_commit_overhead(struct ticket *ticket, unsigned setting, int64_t change);

/* Code was loaded into a device's context, or unloaded. What that takes is not known here, so it is
 * not counted; at verbosity 3 it is told. */
void limit_code_moved(unsigned device, enum api api);

#endif
