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

/* The driver turned out to hold so much more (less) on a device for a kind of memory: in counters
 * and budget. */
void limit_note_change(struct books *books, unsigned device, enum gpulimit_kind kind,
                       int64_t bytes);

/* One allocation less in a pool, of which `place` is the place. */
void limit_leave_pool(struct books *books, unsigned device, uint16_t place);

/* The holes of the pool that an entry of stream-ordered memory lies in. */
struct holes *limit_holes(struct books *books, const struct ledger_entry *entry);

/* Gives the budget what was taken out of the books. */
void limit_give_back(const struct removal *removal);

/* Ends the wait for memory that was freed in stream order: entry number `number` of books->later.
 * The last one takes its place. */
void limit_end_wait(struct books *books, uint32_t number);

/* Removes an entry, with what it stood for in blocks, pools and budget, and shows it. */
void limit_remove_entry(struct books *books, uint32_t number);

#endif
