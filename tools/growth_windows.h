/* SPDX-License-Identifier: MIT
 *
 * The life of a process in windows of time, for whoever asks whether something happens in all of
 * them. Pure, as the view is. Times are of the process's own monotonic clock.
 */
#ifndef GPULIMIT_TOOLS_GROWTH_WINDOWS_H
#define GPULIMIT_TOOLS_GROWTH_WINDOWS_H

#include "view.h"

/* The times between edges[i] and edges[i + 1], for all i below `count`. What is before the first
 * edge is start-up: the first eighth of the life so far, and with marks all up to the first mark
 * after it. A life goes up to the last event, where events are known. */
struct growth_windows {
    uint64_t *edges;
    size_t count;    /* 0: too short a life to have any */
    uint64_t end_ns; /* of the life, or now */
};

#define GROWTH_NO_WINDOW SIZE_MAX

/* Between the process's own marks for this device if there are enough of them, else of equal
 * length. For growth_windows_close. */
void growth_windows_open(const struct view *view, const struct gpulimit_ledger *ledger,
                         const struct gpulimit_ledger_device *device,
                         struct growth_windows *windows);
void growth_windows_close(struct growth_windows *windows);

bool growth_windows_are_after_start(const struct growth_windows *windows, uint64_t time_ns);

/* Which one the time lies in; GROWTH_NO_WINDOW before the first, and after the last mark. */
size_t growth_windows_find(const struct growth_windows *windows, uint64_t time_ns);

/* The time from the end of start-up on. */
uint64_t growth_windows_get_span(const struct growth_windows *windows);

#endif
