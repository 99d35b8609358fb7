/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that waits, see limit_later.h.
 */
#include "limit_later.h"

#include "grow.h"
#include "limit_books.h"
#include "limit_contexts.h"
#include "limit_tiles.h"

#include <stdatomic.h>

static atomic_bool limit_is_awaiting;

/* Keeps what linear memory touches charged until it is back. Returns false if there is no memory to
 * wait with. */
static bool limit_wait(struct books *books, const struct ledger_entry *entry)
{
    struct later *later = &books->later;
    uint64_t touched;
    if (later->count == later->capacity &&
        !grow_array((void **)&later->entries, &later->capacity, sizeof *later->entries))
        return false;
    if (!blocks_add(&books->blocks, entry->address, entry->requested_bytes, &touched))
        return false;
    later->entries[later->count++] = *entry;
    limit_note_change(books, entry->device, GPULIMIT_KIND_LINEAR, (int64_t)touched);
    return true;
}

void limit_release_later(const struct removal *removal, uint64_t stream)
{
    const struct ledger_entry *entry = &removal->entry;
    if (entry->kind == GPULIMIT_KIND_NONE)
        return;
    atomic_store_explicit(&limit_is_awaiting, true, memory_order_relaxed);
    struct books *books = books_lock();
    if (entry->kind == GPULIMIT_KIND_LINEAR && !limit_counts_requests())
        (void)limit_wait(books, entry); /* else: given back too early, for want of memory */
    if (entry->kind == GPULIMIT_KIND_ASYNC) {
        holes_open(limit_holes(books, entry), entry->address, entry->requested_bytes);
        limit_leave_pool_later(books, entry->pool, stream);
    }
    books_unlock();
    limit_give_back(removal);
}

void limit_end_wait(struct books *books, uint32_t number)
{
    struct ledger_entry back = books->later.entries[number];
    books->later.entries[number] = books->later.entries[--books->later.count];
    limit_note_change(books, back.device, GPULIMIT_KIND_LINEAR,
                      -(int64_t)blocks_remove(&books->blocks, back.address, back.requested_bytes));
}

bool limit_awaits(void)
{
    return atomic_load_explicit(&limit_is_awaiting, memory_order_relaxed);
}

uint64_t limit_sync_mark(void)
{
    return limit_awaits() || limit_tiles_move() ? limit_context_mark() : 0;
}

void limit_begin_look(void)
{
    struct books *books = books_lock();
    bool awaits = books->later.count > 0 || limit_pools_await(books);
    atomic_store_explicit(&limit_is_awaiting, awaits, memory_order_relaxed);
    books_unlock();
}

uint64_t limit_later_next(uint32_t *cursor)
{
    uint64_t address = 0;
    struct books *books = books_lock();
    /* Downwards: whatever takes the place of one that is back has been looked at already. */
    if (*cursor > books->later.count)
        *cursor = books->later.count;
    while (*cursor > 0 && address == 0) {
        address = books->later.entries[--*cursor].address;
        if (ledger_find(&books->ledger, address) != LEDGER_NONE) {
            limit_end_wait(books, *cursor); /* handed out again, so it was back */
            address = 0;
        }
    }
    books_unlock();
    return address;
}

void limit_later_is_back(uint64_t address)
{
    struct books *books = books_lock();
    for (uint32_t i = 0; i < books->later.count; i++) {
        if (books->later.entries[i].address == address) {
            limit_end_wait(books, i);
            break;
        }
    }
    books_unlock();
}
