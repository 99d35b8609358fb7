/* SPDX-License-Identifier: MIT
 *
 * Where a stream-ordered pool has room, as far as we saw it being freed. The driver tells how much
 * of a pool is idle, but not whether that is in one piece; in pieces, it grows the pool for a
 * request that would fit their sum.
 *
 * A hole is backed memory that nothing live lies in: freed, or the rest of a chunk. The driver
 * hands it out again, in stream order even before the free is done. It can also take the backing
 * from under a chunk that is idle as a whole, when the pool shrinks or to serve a request that fits
 * nowhere: nobody knows from which, so all such chunks are forgotten then.
 *
 * No locking: the caller has a lock. A zero-initialised struct holes is empty and valid.
 */
#ifndef SHIM_HOLES_H
#define SHIM_HOLES_H

#include <stdbool.h>
#include <stdint.h>

#define HOLES_CHUNK_BYTES (UINT64_C(32) << 20) /* measured on an H200, driver 580.159 */

enum { HOLES_MAX = 64 }; /* the largest; smaller ones are forgotten */

struct holes_span {
    uint64_t start, end;
};

struct holes {
    struct holes_span spans[HOLES_MAX]; /* in no order, none touching another */
    unsigned count;
    bool is_incomplete; /* one was left out for lack of room */
};

/* An allocation was freed. */
void holes_open(struct holes *holes, uint64_t address, uint64_t bytes);

/* An allocation was placed, and the pool has grown by so much for it. */
void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes, uint64_t grown_bytes);

/* Whether a request fits into one hole. */
bool holes_fit(const struct holes *holes, uint64_t bytes);

/* The pool has shrunk: chunks that are holes from end to end may be gone. */
void holes_shrink(struct holes *holes);

#endif
