/* SPDX-License-Identifier: MIT
 *
 * The block rule of blocks.h.
 */
#include "blocks.h"

/* The blocks that an allocation touches: numbers first to last, of which it shares the ends that it
 * does not cover. */
struct blocks_span {
    uint64_t first, last;
    bool shares_first;
    bool shares_last; /* never both for the same block */
};

static inline struct blocks_span blocks_span_of(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    struct blocks_span span = {.first = address / BLOCKS_BYTES, .last = (end - 1) / BLOCKS_BYTES};
    bool covers_last = end % BLOCKS_BYTES == 0;
    span.shares_first = address % BLOCKS_BYTES != 0 || (span.first == span.last && !covers_last);
    span.shares_last = span.last != span.first && !covers_last;
    return span;
}

/* How many blocks it covers. */
static inline uint64_t blocks_covered(const struct blocks_span *span)
{
    return span->last - span->first + 1 - span->shares_first - span->shares_last;
}

/* One user more of a block. Returns false when there is no memory. *touched grows if nobody used it
 * before. */
static bool blocks_enter(struct blocks *blocks, uint64_t number, uint64_t *touched)
{
    uint64_t *users = table_find(&blocks->users, number + 1); /* a key is never 0 */
    if (users) {
        ++*users;
        return true;
    }
    ++*touched;
    return table_set(&blocks->users, number + 1, 1);
}

/* One user less. Returns true if it was the last. */
static bool blocks_leave(struct blocks *blocks, uint64_t number)
{
    uint64_t *users = table_find(&blocks->users, number + 1);
    if (!users || --*users > 0)
        return false;
    table_remove(&blocks->users, number + 1);
    return true;
}

bool blocks_add(struct blocks *blocks, uint64_t address, uint64_t bytes, uint64_t *touched_bytes)
{
    struct blocks_span span = blocks_span_of(address, bytes);
    uint64_t touched = blocks_covered(&span);
    if (span.shares_first && !blocks_enter(blocks, span.first, &touched))
        return false;
    if (span.shares_last && !blocks_enter(blocks, span.last, &touched)) {
        if (span.shares_first)
            blocks_leave(blocks, span.first);
        return false;
    }
    *touched_bytes = touched * BLOCKS_BYTES;
    return true;
}

uint64_t blocks_remove(struct blocks *blocks, uint64_t address, uint64_t bytes)
{
    struct blocks_span span = blocks_span_of(address, bytes);
    uint64_t left = blocks_covered(&span);
    if (span.shares_first)
        left += blocks_leave(blocks, span.first);
    if (span.shares_last)
        left += blocks_leave(blocks, span.last);
    return left * BLOCKS_BYTES;
}

uint64_t blocks_most(uint64_t bytes)
{
    if (bytes > UINT64_MAX - (BLOCKS_BYTES - 1))
        return UINT64_MAX;
    return (bytes + BLOCKS_BYTES - 1) / BLOCKS_BYTES * BLOCKS_BYTES;
}
