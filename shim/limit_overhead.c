/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that settings pass, see limit_overhead.h.
 */
#include "limit_overhead.h"

#include "limit_books.h"
#include "tell.h"

bool limit_reserve_overhead(struct ticket *ticket, unsigned device, uint64_t context, enum api api,
                            uint64_t bytes)
{
    if (limit_counts_requests() || bytes == 0) {
        *ticket = (struct ticket){.api = api, .device = device, .owner = context};
        return true;
    }
    return limit_reserve(ticket, GPULIMIT_KIND_NONE, device, context, api, bytes);
}

/* In the table: the device above; below, by how many bytes the setting takes more, or less, than it
 * did when it was first seen. */
#define LIMIT_OVERHEAD_BITS 56
#define LIMIT_OVERHEAD_MASK ((UINT64_C(1) << LIMIT_OVERHEAD_BITS) - 1)

static int64_t limit_difference(uint64_t value)
{
    return (int64_t)(value << (64 - LIMIT_OVERHEAD_BITS)) >> (64 - LIMIT_OVERHEAD_BITS);
}

/* What it counts: what it took at first belongs to the context. */
static int64_t limit_counted(int64_t difference)
{
    return difference > 0 ? difference : 0;
}

static void limit_add_overhead(struct books *books, unsigned device, int64_t change)
{
    books->ledger.totals[device].overhead_bytes += (uint64_t)change;
    if (!limit_counts_requests())
        budget_adjust(device, change);
    ledger_publish(&books->ledger, device, GPULIMIT_KIND_NONE);
}

void limit_commit_overhead(struct ticket *ticket, unsigned setting, int64_t change)
{
    /* Contexts are aligned, so the low bits of a handle have room for the setting. */
    uint64_t key = ticket->owner | setting;
    struct books *books = books_lock();
    const uint64_t *known = table_find(&books->overhead, key);
    int64_t before = known ? limit_difference(*known) : 0;
    int64_t after = before + change;
    uint64_t value = ((uint64_t)after & LIMIT_OVERHEAD_MASK) | (uint64_t)ticket->device
                                                                   << LIMIT_OVERHEAD_BITS;
    if (table_set(&books->overhead, key, value))
        limit_add_overhead(books, ticket->device, limit_counted(after) - limit_counted(before));
    books_unlock();
    limit_cancel(ticket); /* what it held is in the counters now */
}

void limit_code_moved(unsigned device, enum api api)
{
    tell_code(device, api);
}

struct limit_search {
    struct books *books;
    uint64_t context; /* 0: the primary one of the device */
    unsigned device;
    uint64_t key, value; /* found; key 0: none */
};

static bool limit_is_setting_of(uint64_t key, uint64_t value, void *argument)
{
    struct limit_search *search = argument;
    uint64_t context = key & ~(uint64_t)(LIMIT_SETTINGS - 1);
    bool is_it = search->context != 0 ? context == search->context
                                      : value >> LIMIT_OVERHEAD_BITS == search->device &&
                                            !table_find(&search->books->contexts, context);
    if (is_it) {
        search->key = key;
        search->value = value;
    }
    return !is_it;
}

void limit_end_overhead(struct books *books, uint64_t context, unsigned device)
{
    for (;;) {
        struct limit_search search = {.books = books, .context = context, .device = device};
        table_each(&books->overhead, limit_is_setting_of, &search);
        if (search.key == 0)
            return;
        table_remove(&books->overhead, search.key);
        limit_add_overhead(books, (unsigned)(search.value >> LIMIT_OVERHEAD_BITS),
                           -limit_counted(limit_difference(search.value)));
    }
}
