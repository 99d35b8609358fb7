/* SPDX-License-Identifier: MIT
 *
 * The life of a process in windows of time.
 */
#include "growth_windows.h"

#include <stdlib.h>

#include "memory.h"

enum {
    GROWTH_EQUAL = 8,     /* windows, of which the first is start-up */
    GROWTH_MARKS_MIN = 3, /* fewer say too little */
};

static uint64_t growth_get_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 if nothing is known of any. */
static uint64_t growth_find_last_deed(const struct gpulimit_ledger *ledger)
{
    uint64_t last_ns = 0;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        last_ns = growth_get_later(last_ns, ledger->entries[i].born_mono_ns);
    }
    for (uint32_t i = 0; i < ledger->event_count; i++) {
        last_ns = growth_get_later(last_ns, ledger->events[i].mono_ns);
    }
    for (uint32_t i = 0; i < ledger->mark_count; i++) {
        last_ns = growth_get_later(last_ns, ledger->marks[i].mono_ns);
    }
    return last_ns;
}

/* Now, or the end, by the writer's clock; only differences to the moment of creation mean something
 * in ours. */
static uint64_t growth_find_last_moment(const struct view *view,
                                        const struct gpulimit_ledger *ledger)
{
    uint64_t time_ns = ledger->state == GPULIMIT_STATE_LIVE ? view->time_ns : ledger->ended_time_ns;
    uint64_t life_ns = time_ns > ledger->created_time_ns ? time_ns - ledger->created_time_ns : 0;

    return life_ns < UINT64_MAX - ledger->created_mono_ns ? ledger->created_mono_ns + life_ns
                                                          : UINT64_MAX;
}

/* A program that rests, at a prompt perhaps, has neither gone on growing nor stopped, so its life
 * goes up to the last thing that it did. Of one that was killed, no more is known anyway. */
static uint64_t growth_find_end(const struct view *view, const struct gpulimit_ledger *ledger)
{
    uint64_t deed_ns = growth_find_last_deed(ledger);
    uint64_t moment_ns = growth_find_last_moment(view, ledger);

    if (ledger->state == GPULIMIT_STATE_STALE) {
        return deed_ns;
    }
    return ledger->event_count > 0 && deed_ns < moment_ns ? deed_ns : moment_ns;
}

static int growth_sort_edges(const void *first, const void *second)
{
    uint64_t a = *(const uint64_t *)first;
    uint64_t b = *(const uint64_t *)second;

    return a < b ? -1 : a > b;
}

static void growth_add_edge(struct growth_windows *windows, size_t number, uint64_t time_ns)
{
    windows->edges = memory_grow(windows->edges, number, sizeof(*windows->edges));
    windows->edges[number] = time_ns;
}

/* False if there are too few. */
static bool growth_split_by_marks(const struct gpulimit_ledger *ledger, uint32_t device,
                                  uint64_t start_ns, struct growth_windows *windows)
{
    size_t edges = 0;

    for (uint32_t i = 0; i < ledger->mark_count; i++) {
        if (ledger->marks[i].device == device && ledger->marks[i].mono_ns >= start_ns &&
            ledger->marks[i].mono_ns <= windows->end_ns) {
            growth_add_edge(windows, edges++, ledger->marks[i].mono_ns);
        }
    }
    if (edges < GROWTH_MARKS_MIN) {
        return false;
    }
    qsort(windows->edges, edges, sizeof(*windows->edges), growth_sort_edges);
    windows->count = edges - 1;
    return true;
}

void growth_windows_open(const struct view *view, const struct gpulimit_ledger *ledger,
                         const struct gpulimit_ledger_device *device,
                         struct growth_windows *windows)
{
    uint64_t end_ns = growth_find_end(view, ledger);
    uint64_t length_ns =
        end_ns > ledger->created_mono_ns ? (end_ns - ledger->created_mono_ns) / GROWTH_EQUAL : 0;

    *windows = (struct growth_windows){.end_ns = end_ns};
    if (length_ns == 0 || growth_split_by_marks(ledger, (uint32_t)(device - ledger->devices),
                                                ledger->created_mono_ns + length_ns, windows)) {
        return;
    }
    free(windows->edges);
    windows->edges = NULL;
    for (size_t i = 0; i < GROWTH_EQUAL - 1; i++) {
        growth_add_edge(windows, i, ledger->created_mono_ns + (i + 1) * length_ns);
    }
    /* What came while we were looking belongs to the last. */
    growth_add_edge(windows, GROWTH_EQUAL - 1, UINT64_MAX);
    windows->count = GROWTH_EQUAL - 1;
}

void growth_windows_close(struct growth_windows *windows)
{
    free(windows->edges);
    *windows = (struct growth_windows){0};
}

bool growth_windows_are_after_start(const struct growth_windows *windows, uint64_t time_ns)
{
    return windows->count > 0 && time_ns >= windows->edges[0];
}

size_t growth_windows_find(const struct growth_windows *windows, uint64_t time_ns)
{
    size_t low = 0;
    size_t high = windows->count;

    if (!growth_windows_are_after_start(windows, time_ns) ||
        time_ns >= windows->edges[windows->count]) {
        return GROWTH_NO_WINDOW;
    }
    while (high - low > 1) { /* edges[low] <= time < edges[high] */
        size_t middle = low + (high - low) / 2;

        if (time_ns >= windows->edges[middle]) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t growth_windows_get_span(const struct growth_windows *windows)
{
    return growth_windows_are_after_start(windows, windows->end_ns)
               ? windows->end_ns - windows->edges[0]
               : 0;
}
