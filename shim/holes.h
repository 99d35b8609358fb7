/* SPDX-License-Identifier: MIT
 *
 * Where a stream-ordered pool has room, as far as we saw it being freed. The driver tells how much
 * of a pool is idle, but not whether that is in one piece; in pieces, it grows the pool for a
 * request that would fit their sum.
 *
 * A hole is memory that was freed and that nothing live lies in. The driver hands it out again, in
 * stream order even before the free is done. When the pool has shrunk, nobody knows which holes
 * went with it: all are forgotten.
 *
 * No locking: the caller has a lock. A zero-initialised struct holes is empty and valid.
 */
#ifndef SHIM_HOLES_H
#define SHIM_HOLES_H

#include <stdbool.h>
#include <stdint.h>

enum { HOLES_MAX = 64 }; /* the largest; smaller ones are forgotten */

struct holes_span {
    uint64_t start, end;
};

struct holes {
    struct holes_span spans[HOLES_MAX]; /* in no order, none touching another */
    unsigned count;
};

/* An allocation was freed. */
void holes_open(struct holes *holes, uint64_t address, uint64_t bytes);

/* An allocation was placed. */
void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes);

/* Whether a request fits into one hole. */
bool holes_fit(const struct holes *holes, uint64_t bytes);

void holes_forget(struct holes *holes);

#endif
