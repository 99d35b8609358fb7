/* SPDX-License-Identifier: MIT
 *
 * A short list: a program near its limit has few holes, and one far from it does not ask.
 */
#include "holes.h"

#define HOLES_GRAIN UINT64_C(512) /* the driver places allocations at multiples of this */

static uint64_t holes_end(uint64_t address, uint64_t bytes)
{
    return address + (bytes + HOLES_GRAIN - 1) / HOLES_GRAIN * HOLES_GRAIN;
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

void holes_fill(struct holes *holes, uint64_t address, uint64_t bytes)
{
    uint64_t end = holes_end(address, bytes);
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
}

bool holes_fit(const struct holes *holes, uint64_t bytes)
{
    for (unsigned i = 0; i < holes->count; i++) {
        if (holes->spans[i].end - holes->spans[i].start >= bytes)
            return true;
    }
    return false;
}

void holes_forget(struct holes *holes)
{
    holes->count = 0;
}
