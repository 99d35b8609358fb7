/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that knows what dies with a context, see limit_contexts.h.
 */
#include "limit_contexts.h"

#include "limit_books.h"

/* In the table of contexts: users in the low bits, then the device, then what the context took. */
enum { LIMIT_USERS_BITS = 20, LIMIT_DEVICE_BITS = 8, LIMIT_TOOK_UNIT = 4096 };

static unsigned limit_device_in(uint64_t value)
{
    return (unsigned)(value >> LIMIT_USERS_BITS & (((uint64_t)1 << LIMIT_DEVICE_BITS) - 1));
}

static uint64_t limit_users_in(uint64_t value)
{
    return value & (((uint64_t)1 << LIMIT_USERS_BITS) - 1);
}

static uint64_t limit_took_in(uint64_t value)
{
    return (value >> (LIMIT_USERS_BITS + LIMIT_DEVICE_BITS)) * LIMIT_TOOK_UNIT;
}

void limit_context_created(uint64_t context, unsigned device, uint64_t took_bytes)
{
    uint64_t took = took_bytes / LIMIT_TOOK_UNIT << (LIMIT_USERS_BITS + LIMIT_DEVICE_BITS);
    struct books *books = books_lock();
    table_set(&books->contexts, context, took | (uint64_t)device << LIMIT_USERS_BITS | 1);
    books_unlock();
}

unsigned limit_context_device(uint64_t context)
{
    struct books *books = books_lock();
    const uint64_t *found = table_find(&books->contexts, context);
    unsigned device = found ? limit_device_in(*found) : BUDGET_DEVICES;
    books_unlock();
    return device;
}

struct limit_context_search {
    unsigned device;
    bool is_found;
};

static bool limit_is_elsewhere(uint64_t context, uint64_t value, void *argument)
{
    struct limit_context_search *search = argument;
    (void)context;
    search->is_found = limit_device_in(value) == search->device;
    return !search->is_found;
}

bool limit_has_context(unsigned device)
{
    struct limit_context_search search = {.device = device};
    struct books *books = books_lock();
    table_each(&books->contexts, limit_is_elsewhere, &search);
    books_unlock();
    return search.is_found;
}

void limit_context_attached(uint64_t context)
{
    struct books *books = books_lock();
    uint64_t *users = table_find(&books->contexts, context);
    if (users)
        ++*users;
    books_unlock();
}

uint64_t limit_context_mark(void)
{
    struct books *books = books_lock();
    uint64_t mark = books->ledger.serial;
    books_unlock();
    return mark;
}

/* What a context owns and takes along. */
static bool limit_dies_with_context(const struct ledger_entry *entry, uint64_t mark)
{
    bool is_import = entry->kind == GPULIMIT_KIND_IMPORTED && entry->owner != 0;
    return (is_import || entry->kind == GPULIMIT_KIND_LINEAR ||
            entry->kind == GPULIMIT_KIND_MANAGED || entry->kind == GPULIMIT_KIND_ARRAY) &&
           entry->serial <= mark;
}

/* The context is the one given, or, if that is 0, the primary one of a device. */
static bool limit_is_owned(struct books *books, const struct ledger_entry *entry, uint64_t context,
                           unsigned device)
{
    if (context != 0)
        return entry->owner == context;
    return entry->device == device && !table_find(&books->contexts, entry->owner);
}

/* Arrays without memory of their own are in no ledger. */
static void limit_remove_arrays(struct books *books, uint64_t context, unsigned device,
                                uint64_t mark)
{
    struct tiles *tiles = &books->tiles;
    for (uint32_t number = tiles->piece_count; number-- > 0;) {
        const struct tiles_piece *piece = &tiles->pieces[number];
        struct ledger_entry entry = {.owner = piece->owner, .device = (uint8_t)piece->device};
        if (piece->owner != 0 && piece->serial <= mark &&
            limit_is_owned(books, &entry, context, device))
            limit_end_piece(books, number);
    }
    for (uint32_t number = tiles->array_count; number-- > 0;) {
        const struct tiles_array *array = &tiles->arrays[number];
        struct ledger_entry entry = {.owner = array->owner, .device = (uint8_t)array->device};
        if (array->serial <= mark && limit_is_owned(books, &entry, context, device))
            tiles_remove_array(tiles, number);
    }
}

static void limit_remove_owned(struct books *books, uint64_t context, unsigned device,
                               uint64_t mark)
{
    for (uint32_t number = 0; number < books->ledger.used; number++) {
        const struct ledger_entry *entry = ledger_at(&books->ledger, number);
        if (limit_dies_with_context(entry, mark) && limit_is_owned(books, entry, context, device))
            limit_remove_entry(books, number);
    }
    for (uint32_t number = books->later.count; number-- > 0;) {
        const struct ledger_entry *entry = &books->later.entries[number];
        if (entry->serial <= mark && limit_is_owned(books, entry, context, device))
            limit_end_wait(books, number);
    }
    limit_remove_arrays(books, context, device, mark);
    limit_end_promises(books, context, device);
}

static uint64_t limit_end_context(struct books *books, uint64_t context, uint64_t mark)
{
    const uint64_t *known = table_find(&books->contexts, context);
    uint64_t took = known ? limit_took_in(*known) : 0;
    limit_remove_owned(books, context, 0, mark);
    table_remove(&books->contexts, context);
    return took;
}

uint64_t limit_context_destroyed(uint64_t context, uint64_t mark)
{
    uint64_t took = limit_end_context(books_lock(), context, mark);
    books_unlock();
    return took;
}

uint64_t limit_context_detached(uint64_t context, uint64_t mark)
{
    uint64_t took = 0;
    struct books *books = books_lock();
    uint64_t *users = table_find(&books->contexts, context);
    if (users && limit_users_in(--*users) == 0)
        took = limit_end_context(books, context, mark);
    books_unlock();
    return took;
}

void limit_primary_destroyed(unsigned device, uint64_t mark)
{
    struct books *books = books_lock();
    limit_remove_owned(books, 0, device, mark);
    books_unlock();
}
