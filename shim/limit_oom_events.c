/* SPDX-License-Identifier: MIT
 *
 * The part of limit_oom.h about what happened lately, and who else is on the card.
 */
#include "limit_oom_parts.h"

#include "limit_books.h"
#include "neighbours.h"

static void limit_oom_add_event(struct writer *writer, const struct limit_live *live,
                                const struct gpulimit_event *event)
{
    static const char *const words[] = {[GPULIMIT_EVENT_ALLOCATED] = "allocated",
                                        [GPULIMIT_EVENT_FREED] = "freed",
                                        [GPULIMIT_EVENT_REFUSED] = "refused",
                                        [GPULIMIT_EVENT_DRIVER_REFUSED] = "driver_refused"};
    uint32_t api = GPULIMIT_PLACE_API(event->place), what = event->what;
    writer_open_object(writer, NULL);
    writer_add_number(writer, "monotonic_ns", event->mono_ns);
    writer_add_text(writer, "what", what < sizeof words / sizeof words[0] ? words[what] : NULL);
    writer_add_number(writer, "bytes", event->bytes);
    writer_add_number(writer, "charged_bytes", event->charged_bytes);
    writer_add_number(writer, "gpu_index", GPULIMIT_PLACE_DEVICE(event->place));
    writer_add_text(writer, "kind", limit_oom_kind(GPULIMIT_PLACE_KIND(event->place)));
    writer_add_text(writer, "api", api < APIS ? api_names[api] : NULL);
    if (event->address != 0)
        writer_add_address(writer, "address", event->address);
    else
        writer_add_null(writer, "address");
    writer_add_number(writer, "thread_id", event->thread_id);
    writer_add_text(writer, "where", limit_oom_where(live, event->site));
    writer_add_text(writer, "tag", sites_kept_text(live->kept, event->tag));
    writer_close_object(writer);
}

void limit_oom_add_events(struct writer *writer, const struct limit_live *live)
{
    struct gpulimit_event events[HISTORY_RECENT];
    unsigned count = history_copy_events(&books_lock()->ledger.history, events, HISTORY_RECENT);
    books_unlock();
    writer_open_array(writer, "recent_events");
    for (unsigned i = 0; i < count && writer_has_room(writer, LIMIT_OOM_EVENT + LIMIT_OOM_END); i++)
        limit_oom_add_event(writer, live, &events[i]);
    writer_close_array(writer);
}

void limit_oom_add_neighbours(struct writer *writer, const struct neighbours *neighbours)
{
    writer_open_array(writer, "other_processes");
    for (unsigned i = 0; neighbours && i < neighbours->named_count; i++) {
        const struct neighbour *one = &neighbours->named[i];
        writer_open_object(writer, NULL);
        writer_add_number(writer, "pid", (uint64_t)one->pid);
        writer_add_number(writer, "uid", one->uid);
        writer_add_number(writer, "used_bytes", one->bytes);
        writer_add_text(writer, "command", one->command);
        writer_close_object(writer);
    }
    writer_close_array(writer);
}
