/* SPDX-License-Identifier: MIT
 *
 * A short list: a program near its limit has few holes, and one far from it does not ask.
 */
#include "holes.h"

#define HOLES_GRAIN UINT64_C(512) /* the driver places allocations at multiples of this */

static uint64_t holes_round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint64_t holes_end(uint64_t address, uint64_t bytes)
{
    return address + holes_round_up(bytes, HOLES_GRAIN);
}

static void holes_drop(struct holes *holes, unsigned number)
{
    holes->spans[number] = holes->spans[--holes->count];
}

/* Adds a span, in the place of the smallest if the list is full. */
static void holes_keep(struct holes *holes, struct holes_span span)
{
    unsigned smallest = 0;
    if (span.start >= span.end)
        return;
    if (holes->count < HOLES_MAX) {
        holes->spans[holes->count++] = span;
        return;
    }
    holes->is_incomplete = true;
    for (unsigned i = 1; i < HOLES_MAX; i++) {
        const struct holes_span *other = &holes->spans[i], *least = &holes->spans[smallest];
        if (other->end - other->start < least->end - least->start)
            smallest = i;
    }
    if (holes->spans[smallest].end - holes->spans[smallest].start < span.end - span.start)
        holes->spans[smallest] = span;
}

void holes_shrink(struct holes *holes)
{
    struct holes before = *holes;
    holes->count = 0;
    for (unsigned i = 0; i < before.count; i++) {
        struct holes_span hole = before.spans[i];
        uint64_t first = holes_round_up(hole.start, HOLES_CHUNK_BYTES);
        uint64_t last = hole.end / HOLES_CHUNK_BYTES * HOLES_CHUNK_BYTES;
        if (first >= last) {
            holes_keep(holes, hole);
            continue;
        }
        holes_keep(holes, (struct holes_span){hole.start, first});
        holes_keep(holes, (struct holes_span){last, hole.end});
    }
}

void holes_open(struct holes *holes, uint64_t address, uint64_t bytes)
{
    struct holes_span span = {address, holes_end(address, bytes)};
    for (unsigned i = 0; i < holes->count;) {
        struct holes_span other = holes->spans[i];
        if (other.end < span.start || other.start > span.end) {
            i++;
            continue;
        }
        /* A neighbour: one hole with it. */
        if (other.start < span.start)
            span.start = other.start;
        if (other.end > span.end)
            span.end = other.end;
        holes_drop(holes, i);
    }
    holes_keep(holes, span);
}

/* Where the backed memory around an address ends, as far as we know: its chunk's beginning if we
 * know nothing. */
static uint64_t holes_backed_to(const struct holes *holes, uint64_t address)
{
    for (unsigned i = 0; i < holes->count; i++) {
        if (holes->spans[i].start <= address && address < holes->spans[i].end)
            return holes->spans[i].end;
    }
    return address / HOLES_CHUNK_BYTES * HOLES_CHUNK_BYTES;
}

void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes, uint64_t grown_bytes)
{
    uint64_t end = holes_end(address, bytes);
    uint64_t chunk_end = holes_round_up(end, HOLES_CHUNK_BYTES);
    uint64_t backed_to = holes_backed_to(holes, address);
    bool is_within = backed_to >= end;
    bool has_grown = !is_within && grown_bytes >= chunk_end - backed_to;
    if (!is_within && !has_grown)
        holes_shrink(holes); /* the backing came from elsewhere in the pool */
    for (unsigned i = 0; i < holes->count;) {
        struct holes_span hole = holes->spans[i];
        if (hole.end <= address || hole.start >= end) {
            i++;
            continue;
        }
        holes_drop(holes, i);
        holes_keep(holes, (struct holes_span){hole.start, address});
        holes_keep(holes, (struct holes_span){end, hole.end});
    }
    /* The rest of the last chunk. Without growth, and outside every hole, that chunk was one that
     * we had forgotten, or was moved here: idle as a whole in both cases, unless it was a hole left
     * out. */
    if (has_grown || (!is_within && !holes->is_incomplete))
        holes_open(holes, end, chunk_end - end);
}

bool holes_fit(const struct holes *holes, uint64_t bytes)
{
    for (unsigned i = 0; i < holes->count; i++) {
        if (holes->spans[i].end - holes->spans[i].start >= bytes)
            return true;
    }
    return false;
}
