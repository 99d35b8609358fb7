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
        if (first >= last || hole.is_leaving) {
            holes_keep(holes, hole);
            continue;
        }
        holes_keep(holes, (struct holes_span){hole.start, first, false});
        holes_keep(holes, (struct holes_span){last, hole.end, false});
    }
}

/* Adds a hole, as one with those that it touches. */
static void holes_add(struct holes *holes, struct holes_span span)
{
    for (unsigned i = 0; i < holes->count;) {
        struct holes_span other = holes->spans[i];
        if (other.is_leaving || other.end < span.start || other.start > span.end) {
            i++;
            continue;
        }
        if (other.start < span.start)
            span.start = other.start;
        if (other.end > span.end)
            span.end = other.end;
        holes_drop(holes, i);
    }
    holes_keep(holes, span);
}

void holes_leave(struct holes *holes, uint64_t address, uint64_t bytes)
{
    holes_keep(holes, (struct holes_span){address, holes_end(address, bytes), true});
}

/* Takes out one span that is leaving from within a range. Returns false if there is none. */
static bool holes_take_leaving(struct holes *holes, uint64_t start, uint64_t end,
                               struct holes_span *span)
{
    for (unsigned i = 0; i < holes->count; i++) {
        *span = holes->spans[i];
        if (span->is_leaving && span->start >= start && span->end <= end) {
            holes_drop(holes, i);
            return true;
        }
    }
    return false;
}

void holes_open(struct holes *holes, uint64_t address, uint64_t bytes)
{
    struct holes_span span;
    while (holes_take_leaving(holes, address, holes_end(address, bytes), &span)) {
        span.is_leaving = false;
        holes_add(holes, span);
    }
}

void holes_stay(struct holes *holes, uint64_t address, uint64_t bytes)
{
    struct holes_span span;
    while (holes_take_leaving(holes, address, holes_end(address, bytes), &span))
        continue;
}

/* Where the hole ends that an address lies in; 0 if it lies in none that we know of. */
static uint64_t holes_end_at(const struct holes *holes, uint64_t address)
{
    for (unsigned i = 0; i < holes->count; i++) {
        const struct holes_span *span = &holes->spans[i];
        if (span->start <= address && address < span->end)
            return span->end;
    }
    return 0;
}

/* The driver placed a request outside the holes that would have held it: they are none. */
static void holes_disprove(struct holes *holes, uint64_t bytes)
{
    for (unsigned i = 0; i < holes->count;) {
        const struct holes_span *span = &holes->spans[i];
        if (!span->is_leaving && span->end - span->start >= bytes)
            holes_drop(holes, i);
        else
            i++;
    }
}

static void holes_cut(struct holes *holes, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < holes->count;) {
        struct holes_span hole = holes->spans[i];
        if (hole.end <= start || hole.start >= end) {
            i++;
            continue;
        }
        holes_drop(holes, i);
        holes_keep(holes, (struct holes_span){hole.start, start, hole.is_leaving});
        holes_keep(holes, (struct holes_span){end, hole.end, hole.is_leaving});
    }
}

void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes, uint64_t grown_bytes,
                bool knows_order)
{
    uint64_t end = holes_end(address, bytes);
    uint64_t chunk_end = holes_round_up(end, HOLES_CHUNK_BYTES);
    uint64_t hole_end = holes_end_at(holes, address);
    bool is_within = hole_end >= end;
    /* Else it begins with a chunk, or in a hole, and goes on into chunks that were idle or are new.
     */
    uint64_t known = hole_end ? hole_end : address;
    bool knows_chunk = known % HOLES_CHUNK_BYTES == 0;
    uint64_t needs = chunk_end - known / HOLES_CHUNK_BYTES * HOLES_CHUNK_BYTES;
    if (!is_within) {
        holes_disprove(holes, bytes);
        if (grown_bytes < needs)
            holes_shrink(holes); /* the backing came from elsewhere in the pool */
    }
    holes_cut(holes, address, end);
    if (!is_within && knows_order && knows_chunk)
        holes_add(holes, (struct holes_span){end, chunk_end, false});
}

bool holes_fit(const struct holes *holes, uint64_t bytes)
{
    for (unsigned i = 0; i < holes->count; i++) {
        const struct holes_span *span = &holes->spans[i];
        if (!span->is_leaving && span->end - span->start >= bytes)
            return true;
    }
    return false;
}
