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
    bool is_leaving; /* its free is under way: no hole yet, but another allocation may come to lie
                        in it */
};

struct holes {
    struct holes_span spans[HOLES_MAX]; /* in no order, no two holes touching */
    unsigned count;
};

/* The driver is about to free an allocation. Ends with holes_open or holes_stay. */
void holes_leave(struct holes *holes, uint64_t address, uint64_t bytes);

/* It has freed: what others have not filled meanwhile is a hole. */
void holes_open(struct holes *holes, uint64_t address, uint64_t bytes);

/* It has not, or the memory went elsewhere. */
void holes_stay(struct holes *holes, uint64_t address, uint64_t bytes);

/* An allocation was placed, and the pool has grown by so much for it. knows_order: no other was
 * placed at about the same time, so that what we know of its surroundings is as the driver saw it.
 */
void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes, uint64_t grown_bytes,
                bool knows_order);

/* Whether a request fits into one hole. */
bool holes_fit(const struct holes *holes, uint64_t bytes);

/* The pool has shrunk: chunks that are holes from end to end may be gone. */
void holes_shrink(struct holes *holes);

#endif
