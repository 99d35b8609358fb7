// SPDX-License-Identifier: MIT
//
// First-fit addresses; see arena.h.

#include "arena.h"

#include <stdlib.h>

struct arena_extent {
    uint64_t start;
    uint64_t end;
    struct arena_extent *next;
};

bool arena_give(struct arena *arena, uint64_t start, uint64_t size)
{
    struct arena_extent **link = &arena->free, *before = NULL;

    while (*link && (*link)->start < start) {
        before = *link;
        link = &before->next;
    }
    struct arena_extent *after = *link;
    if (before && before->end == start) {
        before->end += size;
        if (after && after->start == before->end) {
            before->end = after->end;
            before->next = after->next;
            free(after);
        }
        return true;
    }
    if (after && after->start == start + size) {
        after->start = start;
        return true;
    }
    struct arena_extent *extent = malloc(sizeof *extent);
    if (!extent)
        return false;
    *extent = (struct arena_extent){start, start + size, after};
    *link = extent;
    return true;
}

/* Cuts [start, start + size) out of the extent that link points to. */
static bool arena_cut(struct arena_extent **link, uint64_t start, uint64_t size)
{
    struct arena_extent *extent = *link;
    uint64_t end = start + size;

    if (extent->start < start && end < extent->end) {
        struct arena_extent *rest = malloc(sizeof *rest);

        if (!rest)
            return false;
        *rest = (struct arena_extent){end, extent->end, extent->next};
        extent->end = start;
        extent->next = rest;
    } else if (extent->start < start) {
        extent->end = start;
    } else if (end < extent->end) {
        extent->start = end;
    } else {
        *link = extent->next;
        free(extent);
    }
    return true;
}

uint64_t arena_take(struct arena *arena, uint64_t size, uint64_t alignment)
{
    for (struct arena_extent **link = &arena->free; *link; link = &(*link)->next) {
        uint64_t start = ((*link)->start + alignment - 1) & ~(alignment - 1);

        if (start < (*link)->end && (*link)->end - start >= size)
            return arena_cut(link, start, size) ? start : 0;
    }
    return 0;
}

bool arena_take_at(struct arena *arena, uint64_t start, uint64_t size)
{
    for (struct arena_extent **link = &arena->free; *link; link = &(*link)->next)
        if ((*link)->start <= start && start < (*link)->end)
            return (*link)->end - start >= size && arena_cut(link, start, size);
    return false;
}

uint64_t arena_tail(const struct arena *arena, uint64_t end)
{
    for (const struct arena_extent *extent = arena->free; extent; extent = extent->next)
        if (extent->end == end)
            return extent->start;
    return end;
}

void arena_finish(struct arena *arena)
{
    while (arena->free) {
        struct arena_extent *next = arena->free->next;

        free(arena->free);
        arena->free = next;
    }
}
