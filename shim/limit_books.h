/* SPDX-License-Identifier: MIT
 *
 * What limit.c lends to its own parts, limit_pools.c, limit_vmm.c and limit_contexts.c. All of it
 * is called with the books locked.
 */
#ifndef SHIM_LIMIT_BOOKS_H
#define SHIM_LIMIT_BOOKS_H

#include "limit.h"
#include "start.h"

/* Whether requests are charged, not what the driver commits for them. */
static inline bool limit_counts_requests(void)
{
    return start_config()->count_mode == GPULIMIT_COUNT_ALLOCATIONS;
}

/* The most that the driver can take for a request, which is all that is known before its call. */
uint64_t limit_most(enum gpulimit_kind kind, uint64_t bytes);

/* The driver turned out to hold so much more (less) on a device for a kind of memory: in counters
 * and budget. */
void limit_note_change(struct books *books, unsigned device, enum gpulimit_kind kind,
                       int64_t bytes);

/* What memory of a request's kind is reserved in: its pool, or its device's graph memory. NULL for
 * other kinds. */
struct pool *limit_pool_of(struct books *books, const struct ticket *ticket);

/* Announces a request to its pool, with the books unlocked. Returns false if there is no room for
 * one more pool. */
bool limit_begin_in_pool(struct ticket *ticket);

/* One allocation less in a pool, of which `place` is the place; later: freed in stream order. With
 * the last one of a pool that the program has destroyed, the driver gives back all that it has. */
void limit_leave_pool(struct books *books, uint16_t place);
void limit_leave_pool_later(struct books *books, uint16_t place, uint64_t stream);

/* Whether something of a pool was freed in stream order and not waited for. */
bool limit_pools_await(const struct books *books);

/* The holes of the pool that an entry of stream-ordered memory lies in. */
struct holes *limit_holes(struct books *books, const struct ledger_entry *entry);

/* Gives back what a request held and did not need. While another of its pool counts on a hole, that
 * one gets it: without having grown, this request lies in a hole itself, and it may be the same. */
void limit_give_surplus(struct books *books, const struct ticket *ticket, uint64_t bytes);

/* A request that counted on a hole is over: what others left for it is its own. */
void limit_end_grace(struct books *books, struct ticket *ticket);

/* Exchanges what is held for what is to be charged: that may be negative, of a pool that shrank
 * meanwhile. Returns false, with what was held, if it does not fit. */
bool limit_settle(struct books *books, struct ticket *ticket, int64_t charge);

/* Gives the budget what was taken out of the books. */
void limit_give_back(const struct removal *removal);

/* Ends the wait for memory that was freed in stream order: entry number `number` of books->later.
 * The last one takes its place. */
void limit_end_wait(struct books *books, uint32_t number);

/* Reserves room for a ticket that says what for. As limit_reserve. */
bool limit_reserve_ticket(struct ticket *ticket);

/* Shows and charges what a device's overhead is now: measured, and promised to kernels that have
 * not taken it. */
void limit_set_overhead(struct books *books, unsigned device);

/* Kernels have taken so much: of what settings promised, what can be in it is taken. A heap or
 * buffer is taken as a whole (measured, H200), and cannot be set any more then. */
void limit_take_promises(struct books *books, unsigned device, uint64_t bytes);

/* A context, or if that is 0 the primary one of a device, is gone, and with it what its settings
 * promised. */
void limit_end_promises(struct books *books, uint64_t context, unsigned device);

/* A handle or mapping of memory of cuMemCreate is gone: removes it if that was the last. */
void limit_reap(struct books *books, uint32_t object);

/* Memory is out of an array: piece number `number` of books->tiles. The last one takes its place.
 */
void limit_end_piece(struct books *books, uint32_t number);

/* Memory of cuMemCreate has lost its last handle and mapping. Returns true if it may live on by an
 * export: it is then kept charged until limit_release_exports finds otherwise. */
bool limit_keep_export(struct books *books, const struct mappings_object *object);
void limit_release_exports(struct books *books);

/* Removes an entry, with what it stood for in blocks, pools and budget, and shows it. */
void limit_remove_entry(struct books *books, uint32_t number);

#endif
