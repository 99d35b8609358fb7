/* SPDX-License-Identifier: MIT
 *
 * What happened lately: the last events, for reports, and the numbers of events and marks, which
 * are mirrored into the region's rings.
 *
 * No locking: the caller has a lock. A zero-initialised struct history is empty and valid.
 */
#ifndef SHIM_HISTORY_H
#define SHIM_HISTORY_H

#include "budget.h"

#include "gpulimit/region.h"

enum { HISTORY_RECENT = 64 };

struct history {
    struct gpulimit_event recent[HISTORY_RECENT]; /* event n at (n - 1) % HISTORY_RECENT */
    uint64_t events, marks;                       /* so far */
    uint64_t peaks[BUDGET_DEVICES];               /* the highest figure since the last mark */
};

/* Gives the event the next number and keeps it. */
void history_add_event(struct history *history, struct gpulimit_event *event);

/* Gives the mark the next number and its device's peak since the one before. */
void history_add_mark(struct history *history, struct gpulimit_mark *mark);

/* A device holds so much now. */
static inline void history_note_peak(struct history *history, unsigned device, uint64_t bytes)
{
    if (bytes > history->peaks[device])
        history->peaks[device] = bytes;
}

/* Copies the last events, the newest first, at most `most`. Returns how many. */
unsigned history_copy_events(const struct history *history, struct gpulimit_event *events,
                             unsigned most);

#endif
