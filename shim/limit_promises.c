/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that keeps room for what kernels may take later, see limit_promises.h.
 */
#include "limit_promises.h"

#include "limit_books.h"
#include "limit_overhead.h"

/* In the table of promises: the device above; below, by how many bytes the setting promises more,
 * or less, than it did when it was first seen. */
#define LIMIT_PROMISE_BITS 56
#define LIMIT_PROMISE_MASK ((UINT64_C(1) << LIMIT_PROMISE_BITS) - 1)

static int64_t limit_difference(uint64_t value)
{
    return (int64_t)(value << (64 - LIMIT_PROMISE_BITS)) >> (64 - LIMIT_PROMISE_BITS);
}

/* What it counts: what it promised at first belongs to the context. */
static int64_t limit_counted(int64_t difference)
{
    return difference > 0 ? difference : 0;
}

static void limit_change_promise(struct books *books, unsigned device, int64_t change)
{
    books->overhead[device].promised_bytes += (uint64_t)change;
    limit_set_overhead(books, device);
}

void limit_promise(unsigned device, uint64_t context, unsigned setting, int64_t change)
{
    /* Contexts are aligned, so the low bits of a handle have room for the setting. */
    uint64_t key = context | setting;
    if (!limit_counts_overhead() || change == 0)
        return;
    struct books *books = books_lock();
    const uint64_t *known = table_find(&books->promises, key);
    int64_t before = known ? limit_difference(*known) : 0;
    int64_t after = before + change;
    uint64_t value = ((uint64_t)after & LIMIT_PROMISE_MASK) | (uint64_t)device
                                                                  << LIMIT_PROMISE_BITS;
    if (table_set(&books->promises, key, value))
        limit_change_promise(books, device, limit_counted(after) - limit_counted(before));
    books_unlock();
}

struct limit_taking {
    unsigned device;
    uint64_t most_bytes;
    uint64_t key, bytes; /* found; key 0: none */
};

static bool limit_find_taken(uint64_t key, uint64_t value, void *argument)
{
    struct limit_taking *taking = argument;
    uint64_t bytes = (uint64_t)limit_counted(limit_difference(value));
    if (value >> LIMIT_PROMISE_BITS == taking->device && bytes > taking->bytes &&
        bytes <= taking->most_bytes) {
        taking->key = key;
        taking->bytes = bytes;
    }
    return true;
}

void limit_take_promises(struct books *books, unsigned device, uint64_t bytes)
{
    for (;;) {
        struct limit_taking taking = {.device = device, .most_bytes = bytes};
        table_each(&books->promises, limit_find_taken, &taking);
        if (taking.key == 0)
            return;
        table_remove(&books->promises, taking.key);
        limit_change_promise(books, device, -(int64_t)taking.bytes);
        bytes -= taking.bytes;
    }
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
                                      : value >> LIMIT_PROMISE_BITS == search->device &&
                                            !table_find(&search->books->contexts, context);
    if (is_it) {
        search->key = key;
        search->value = value;
    }
    return !is_it;
}

void limit_end_promises(struct books *books, uint64_t context, unsigned device)
{
    for (;;) {
        struct limit_search search = {.books = books, .context = context, .device = device};
        table_each(&books->promises, limit_is_setting_of, &search);
        if (search.key == 0)
            return;
        table_remove(&books->promises, search.key);
        limit_change_promise(books, (unsigned)(search.value >> LIMIT_PROMISE_BITS),
                             -limit_counted(limit_difference(search.value)));
    }
}
