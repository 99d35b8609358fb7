/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that knows what dies with a context, see limit_contexts.h.
 */
#include "limit_contexts.h"

#include "limit_books.h"

void limit_context_created(uint64_t context)
{
    struct books *books = books_lock();
    table_set(&books->contexts, context, 1);
    books_unlock();
}

void limit_context_attached(uint64_t context)
{
    struct books *books = books_lock();
    uint64_t *users = table_find(&books->contexts, context);
    if (users)
        ++*users;
    books_unlock();
}

bool limit_context_is_last(uint64_t context)
{
    struct books *books = books_lock();
    const uint64_t *users = table_find(&books->contexts, context);
    bool is_last = users && *users == 1;
    books_unlock();
    return is_last;
}

bool limit_context_left(uint64_t context)
{
    struct books *books = books_lock();
    uint64_t *users = table_find(&books->contexts, context);
    bool was_last = users && --*users == 0;
    if (was_last)
        table_remove(&books->contexts, context);
    books_unlock();
    return was_last;
}

void limit_context_gone(uint64_t context)
{
    struct books *books = books_lock();
    table_remove(&books->contexts, context);
    books_unlock();
}

uint64_t limit_context_mark(void)
{
    struct books *books = books_lock();
    uint64_t mark = books->ledger.serial;
    books_unlock();
    return mark;
}

static bool limit_dies_with_its_context(const struct ledger_entry *entry)
{
    return entry->kind == GPULIMIT_KIND_LINEAR || entry->kind == GPULIMIT_KIND_MANAGED;
}

/* Detaches an entry and puts it at the head of the removal's chain. A detached one is left to
 * whoever detached it: that thread frees in a context that another destroys, and the driver answers
 * it as it sees fit. */
static void limit_chain(struct books *books, struct removal *removal, uint32_t number)
{
    struct ledger_entry *entry = ledger_at(&books->ledger, number);
    if (ledger_find(&books->ledger, entry->address) != number)
        return;
    ledger_detach(&books->ledger, number);
    entry->next = removal->first;
    removal->first = number;
}

void limit_context_detach(struct removal *removal, uint64_t context)
{
    removal->first = LEDGER_NONE;
    struct books *books = books_lock();
    for (uint32_t number = 0; number < books->ledger.used; number++) {
        const struct ledger_entry *entry = ledger_at(&books->ledger, number);
        if (limit_dies_with_its_context(entry) && entry->owner == context)
            limit_chain(books, removal, number);
    }
    books_unlock();
}

void limit_primary_detach(struct removal *removal, unsigned device, uint64_t mark)
{
    removal->first = LEDGER_NONE;
    struct books *books = books_lock();
    for (uint32_t number = 0; number < books->ledger.used; number++) {
        const struct ledger_entry *entry = ledger_at(&books->ledger, number);
        if (limit_dies_with_its_context(entry) && entry->device == device &&
            entry->serial <= mark && !table_find(&books->contexts, entry->owner))
            limit_chain(books, removal, number);
    }
    books_unlock();
}
