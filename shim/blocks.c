/* SPDX-License-Identifier: MIT
 *
 * The block rule of blocks.h.
 */
#include "blocks.h"

struct blocks_span {
    uint64_t covered;   /* blocks that lie wholly inside the allocation */
    uint64_t shared[2]; /* numbers + 1 of blocks touched in part */
    unsigned shared_count;
};

static struct blocks_span blocks_span_of(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    uint64_t first = address / BLOCKS_BYTES;
    uint64_t last = (end - 1) / BLOCKS_BYTES;
    struct blocks_span span = {.covered = last - first + 1};
    bool first_covered = address % BLOCKS_BYTES == 0;
    bool last_covered = end % BLOCKS_BYTES == 0;
    if (!first_covered || (first == last && !last_covered)) {
        span.shared[span.shared_count++] = first + 1;
        span.covered--;
    }
    if (last != first && !last_covered) {
        span.shared[span.shared_count++] = last + 1;
        span.covered--;
    }
    return span;
}

/* One user more of a block. Returns false when there is no memory. *is_first: nobody used it
 * before. */
static bool blocks_enter(struct blocks *blocks, uint64_t number, bool *is_first)
{
    uint64_t *users = table_find(&blocks->users, number);
    *is_first = users == NULL;
    if (!users)
        return table_set(&blocks->users, number, 1);
    ++*users;
    return true;
}

/* One user less. Returns true if it was the last. */
static bool blocks_leave(struct blocks *blocks, uint64_t number)
{
    uint64_t *users = table_find(&blocks->users, number);
    if (!users)
        return false;
    if (--*users > 0)
        return false;
    table_remove(&blocks->users, number);
    return true;
}

bool blocks_add(struct blocks *blocks, uint64_t address, uint64_t bytes, uint64_t *touched_bytes)
{
    struct blocks_span span = blocks_span_of(address, bytes);
    uint64_t touched = span.covered;
    for (unsigned i = 0; i < span.shared_count; i++) {
        bool is_first;
        if (!blocks_enter(blocks, span.shared[i], &is_first)) {
            while (i-- > 0)
                blocks_leave(blocks, span.shared[i]);
            return false;
        }
        touched += is_first;
    }
    *touched_bytes = touched * BLOCKS_BYTES;
    return true;
}

uint64_t blocks_remove(struct blocks *blocks, uint64_t address, uint64_t bytes)
{
    struct blocks_span span = blocks_span_of(address, bytes);
    uint64_t left = span.covered;
    for (unsigned i = 0; i < span.shared_count; i++)
        left += blocks_leave(blocks, span.shared[i]);
    return left * BLOCKS_BYTES;
}

uint64_t blocks_most(uint64_t bytes)
{
    if (bytes > UINT64_MAX - (BLOCKS_BYTES - 1))
        return UINT64_MAX;
    return (bytes + BLOCKS_BYTES - 1) / BLOCKS_BYTES * BLOCKS_BYTES;
}
