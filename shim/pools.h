/* SPDX-License-Identifier: MIT
 *
 * What stream-ordered pools hold. A pool is charged by its RESERVED figure, which the driver tells,
 * not by the sum of requests: it grows in chunks, keeps them after a free, and may grow although a
 * request would fit into what it has (fragmentation).
 *
 * The difficulty is that the figure is of the whole pool while several threads allocate from it at
 * once. So an allocation first says how much the pool may grow by it (pools_begin), and the budget
 * holds that much. When it is over, the figure read after it decides (pools_end). While others are
 * still under way, growth is put down to this allocation only up to what it held: what is more is
 * theirs, and they hold it. So the budget never shows less than the device, and once nobody is
 * under way it shows the figure itself.
 *
 * A reading is numbered before the driver is asked. Of two readings the one with the higher number
 * began later, so a slow thread's old figure never overwrites a newer one.
 *
 * No locking: the caller has a lock. A zero-initialised struct pools is empty and valid.
 */
#ifndef SHIM_POOLS_H
#define SHIM_POOLS_H

#include "holes.h"
#include "queue.h"

enum { POOLS_MAX = 1024, POOLS_HOST = -1 };

struct pool {
    bool in_use;
    bool is_managed;         /* of managed memory, which is in no figure of a process's */
    bool is_closing;         /* its destruction is under way: not to be asked about */
    int device;              /* POOLS_HOST: host memory, which is charged to nobody */
    uint64_t handle;         /* 0: destroyed by the program, and gone with its last allocation */
    uint32_t live;           /* allocations from it */
    uint32_t pinned;         /* threads that are asking the driver about it, outside the lock */
    uint64_t reserved_bytes; /* what the budget holds for it, apart from allocations under way */
    uint64_t pending_bytes;  /* what allocations under way hold */
    uint32_t under_way;      /* how many there are */
    uint32_t begun;          /* how many have begun so far */
    bool has_grace;          /* one that holds nothing is under way: it counts on a hole */
    uint64_t spare_bytes; /* what others held and did not need meanwhile: they may have filled that
                             hole */
    /* What was freed in stream order and not waited for since: on this stream, or, as
     * QUEUE_THREAD_STREAM, on several; 0 nothing. The last of it had the caller's serial. */
    uint64_t freed_on, freed_serial;
    uint64_t answered; /* the number of the latest reading, which is answer_bytes */
    uint64_t answer_bytes;
    struct holes holes; /* where it has room */
};

/* What the driver said of a pool. */
struct pool_reading {
    uint64_t number; /* taken before the driver was asked, from a counter that only grows */
    uint64_t reserved_bytes;
};

struct pools {
    struct pool places[POOLS_MAX];
    unsigned used; /* places[0 .. used-1] have been in use */
};

/* The most that one allocation of this size can make a pool grow. Saturates at UINT64_MAX. */
uint64_t pools_most(uint64_t bytes);

/* Returns the pool of a handle, or NULL. Valid until it is removed. */
struct pool *pools_find(struct pools *pools, uint64_t handle);

/* Makes a pool known. Returns the known one if it is already, NULL if there are too many. */
struct pool *pools_insert(struct pools *pools, uint64_t handle, int device);

/* Forgets a pool. The caller has seen to what it was charged. */
void pools_remove(struct pool *pool);

/* Something was freed in stream order. */
void pools_free_on(struct pool *pool, uint64_t stream, uint64_t serial);

/* A stream, or QUEUE_EVERY_STREAM, was synchronised, which began after the serial mark. */
void pools_synchronize(struct pool *pool, uint64_t stream, uint64_t mark);

/* Whether the driver has given back all that the pool had: the program has destroyed it, and what
 * it allocated from it is freed and waited for. */
bool pools_is_over(const struct pool *pool);

void pools_clear(struct pools *pools);

/* An allocation that may grow the pool by held_bytes, which the budget holds, is under way. Returns
 * its number for pools_was_alone. */
uint32_t pools_begin(struct pool *pool, uint64_t held_bytes);

/* Whether no other allocation was under way with the one of that number, which is just over: if one
 * was, nobody knows which of the two the driver served first. */
bool pools_was_alone(const struct pool *pool, uint32_t number);

/* It is over, as this reading shows. Returns the change of what is charged, held_bytes apart: at
 * most held_bytes, unless the pool grew by more than pools_most said. */
int64_t pools_end(struct pool *pool, uint64_t held_bytes, const struct pool_reading *reading);

/* It came to nothing. Returns the change of what is charged, held_bytes apart. */
int64_t pools_cancel(struct pool *pool, uint64_t held_bytes);

/* Takes in a reading that is no allocation's own. Returns the change of what is charged. */
int64_t pools_update(struct pool *pool, const struct pool_reading *reading);

#endif
