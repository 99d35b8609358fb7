/* SPDX-License-Identifier: MIT
 *
 * The numbering of history.h.
 */
#include "history.h"

#include "region.h"

void history_add_event(struct history *history, struct gpulimit_event *event)
{
    event->number = ++history->events;
    history->recent[(event->number - 1) % HISTORY_RECENT] = *event;
    region_put_event(event);
}

void history_add_mark(struct history *history, struct gpulimit_mark *mark)
{
    mark->number = ++history->marks;
    mark->peak_bytes = history->peaks[mark->device];
    history->peaks[mark->device] = mark->charged_bytes;
    region_put_mark(mark);
}

unsigned history_copy_events(const struct history *history, struct gpulimit_event *events,
                             unsigned most)
{
    unsigned count = 0;
    for (uint64_t number = history->events; number > 0 && count < most && count < HISTORY_RECENT;
         number--)
        events[count++] = history->recent[(number - 1) % HISTORY_RECENT];
    return count;
}
