/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that lists what belongs to others, see limit_imports.h.
 */
#include "limit_imports.h"

#include "limit_books.h"

/* The entry of an import, or LEDGER_NONE: the address may have gone to an allocation of our own. */
static uint32_t limit_find_import(struct books *books, uint64_t address)
{
    uint32_t number = ledger_find(&books->ledger, address);
    bool is_import =
        number != LEDGER_NONE && ledger_at(&books->ledger, number)->kind == GPULIMIT_KIND_IMPORTED;
    return is_import ? number : LEDGER_NONE;
}

void limit_imported(uint64_t address, unsigned device, uint64_t owner, enum api api)
{
    struct ledger_entry entry = {.address = address,
                                 .owner = owner,
                                 .kind = GPULIMIT_KIND_IMPORTED,
                                 .device = (uint8_t)device,
                                 .api = (uint16_t)api};
    struct books *books = books_lock();
    uint64_t *opens = table_find(&books->opens, address);
    uint32_t stale = LEDGER_NONE;
    if (opens && limit_find_import(books, address) != LEDGER_NONE)
        ++*opens;
    else if (table_set(&books->opens, address, 1))
        ledger_insert(&books->ledger, &entry, &stale);
    if (stale != LEDGER_NONE)
        limit_remove_entry(books, stale);
    ledger_publish(&books->ledger, device, GPULIMIT_KIND_IMPORTED);
    books_unlock();
}

void limit_closed(uint64_t address)
{
    struct books *books = books_lock();
    uint64_t *opens = table_find(&books->opens, address);
    if (opens && --*opens == 0) {
        uint32_t number = limit_find_import(books, address);
        table_remove(&books->opens, address);
        if (number != LEDGER_NONE)
            limit_remove_entry(books, number);
    }
    books_unlock();
}
