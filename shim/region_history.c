/* SPDX-License-Identifier: MIT
 *
 * The sections of the ledger file that are written over again and again, and so stay mapped:
 * tallies, timelines, and the rings of events and marks.
 */
#include "region_parts.h"

#include <sys/mman.h>

enum {
    HISTORY_FIRST_BYTES =
        8192, /* of the tallies' first extent; each further one is twice as large */
    HISTORY_MOST_EXTENTS = 7,
    HISTORY_FIRST_TALLIES = HISTORY_FIRST_BYTES / sizeof(struct gpulimit_tally),
    HISTORY_EVENTS = 512,
    HISTORY_MARKS = 512,
};

static struct region_places {
    struct gpulimit_tally *tallies[HISTORY_MOST_EXTENTS];
    unsigned tallies_extents;
    struct gpulimit_timeline *timelines[GPULIMIT_DEVICES];
    struct gpulimit_event *events;
    struct gpulimit_mark *marks;
    bool is_full; /* growing has failed; not tried again */
} region_places;

/* An extent of so many records. NULL: there is no room for it. */
static void *region_make(enum gpulimit_section section, uint32_t count, size_t record_bytes)
{
    uint64_t offset;
    if (region_places.is_full || !region_header())
        return NULL;
    void *memory = region_extend(count * record_bytes, &offset);
    if (memory && !region_publish_extent(section, count, offset)) {
        munmap(memory, count * record_bytes);
        memory = NULL;
    }
    region_places.is_full = memory == NULL;
    return memory;
}

static uint32_t region_tallies_in(unsigned extent)
{
    return (uint32_t)HISTORY_FIRST_TALLIES << extent;
}

/* The place of a tally in the extents, of which each is twice as large as the one before. NULL:
 * there is none. */
static struct gpulimit_tally *region_tally(uint32_t number)
{
    uint32_t scaled = (number - 1) / HISTORY_FIRST_TALLIES + 1;
    unsigned extent = 31u - (unsigned)__builtin_clz(scaled);
    uint32_t first = (((uint32_t)1 << extent) - 1) * HISTORY_FIRST_TALLIES;
    if (extent == region_places.tallies_extents && extent < HISTORY_MOST_EXTENTS) {
        region_places.tallies[extent] = region_make(
            GPULIMIT_SECTION_TALLIES, region_tallies_in(extent), sizeof(struct gpulimit_tally));
        region_places.tallies_extents += region_places.tallies[extent] != NULL;
    }
    return extent < region_places.tallies_extents
               ? &region_places.tallies[extent][number - 1 - first]
               : NULL;
}

void region_put_tally(uint32_t number, const struct tally *tally)
{
    struct gpulimit_tally *place = number == TALLY_NONE ? NULL : region_tally(number);
    if (!place)
        return;
    uint32_t next = region_begin(&place->sequence);
    REGION_STORE(place->device, tally->device);
    REGION_STORE(place->site, tally->site);
    REGION_STORE(place->bytes, tally->bytes);
    REGION_STORE(place->allocations_total, tally->allocations_total);
    REGION_STORE(place->frees_total, tally->frees_total);
    REGION_STORE(place->peak_epoch, tally->peak_epoch);
    REGION_STORE(place->peak_bytes, tally->peak_bytes);
    REGION_STORE(place->peak_count, (uint32_t)tally->peak_count);
    REGION_STORE(place->sequence, next);
}

static struct gpulimit_timeline *region_timeline(unsigned device, const struct timeline *timeline)
{
    if (device >= GPULIMIT_DEVICES)
        return NULL;
    if (!region_places.timelines[device]) {
        struct gpulimit_timeline *made =
            region_make(GPULIMIT_SECTION_TIMELINES, 1, sizeof(struct gpulimit_timeline));
        if (!made)
            return NULL;
        made->device = device; /* known to readers by then, but count is 0: nothing to see */
        made->start_mono_ns = timeline->start_mono_ns;
        region_places.timelines[device] = made;
    }
    return region_places.timelines[device];
}

void region_put_timeline(unsigned device, const struct timeline *timeline, uint32_t first)
{
    struct gpulimit_timeline *place = region_timeline(device, timeline);
    if (!place)
        return;
    uint32_t next = region_begin(&place->sequence);
    for (uint32_t i = first; i < timeline->count; i++) {
        REGION_STORE(place->samples[i].highest_bytes, timeline->samples[i].highest_bytes);
        REGION_STORE(place->samples[i].lowest_bytes, timeline->samples[i].lowest_bytes);
        REGION_STORE(place->samples[i].limit_bytes, timeline->samples[i].limit_bytes);
        REGION_STORE(place->samples[i].denials, timeline->samples[i].denials);
    }
    REGION_STORE(place->interval_ns, timeline->interval_ns);
    REGION_STORE(place->count, timeline->count);
    REGION_STORE(place->sequence, next);
}

void region_put_event(const struct gpulimit_event *event)
{
    if (!region_places.events)
        region_places.events =
            region_make(GPULIMIT_SECTION_EVENTS, HISTORY_EVENTS, sizeof(struct gpulimit_event));
    if (!region_places.events)
        return;
    struct gpulimit_event *place = &region_places.events[(event->number - 1) % HISTORY_EVENTS];
    REGION_STORE(place->number, 0);
    REGION_STORE(place->mono_ns, event->mono_ns);
    REGION_STORE(place->place, event->place);
    REGION_STORE(place->what, event->what);
    REGION_STORE(place->thread_id, event->thread_id);
    REGION_STORE(place->site, event->site);
    REGION_STORE(place->tag, event->tag);
    REGION_STORE(place->bytes, event->bytes);
    REGION_STORE(place->charged_bytes, event->charged_bytes);
    REGION_STORE(place->address, event->address);
    REGION_STORE(place->number, event->number);
}

void region_put_mark(const struct gpulimit_mark *mark)
{
    if (!region_places.marks)
        region_places.marks =
            region_make(GPULIMIT_SECTION_MARKS, HISTORY_MARKS, sizeof(struct gpulimit_mark));
    if (!region_places.marks)
        return;
    struct gpulimit_mark *place = &region_places.marks[(mark->number - 1) % HISTORY_MARKS];
    REGION_STORE(place->number, 0);
    REGION_STORE(place->mono_ns, mark->mono_ns);
    REGION_STORE(place->text, mark->text);
    REGION_STORE(place->device, mark->device);
    REGION_STORE(place->charged_bytes, mark->charged_bytes);
    REGION_STORE(place->peak_bytes, mark->peak_bytes);
    REGION_STORE(place->requested_bytes, mark->requested_bytes);
    REGION_STORE(place->allocations_total, mark->allocations_total);
    REGION_STORE(place->live_allocations, mark->live_allocations);
    REGION_STORE(place->denials, mark->denials);
    REGION_STORE(place->number, mark->number);
}

void region_forget_history(void)
{
    for (unsigned i = 0; i < region_places.tallies_extents; i++)
        munmap(region_places.tallies[i], region_tallies_in(i) * sizeof(struct gpulimit_tally));
    for (unsigned device = 0; device < GPULIMIT_DEVICES; device++) {
        if (region_places.timelines[device])
            munmap(region_places.timelines[device], sizeof(struct gpulimit_timeline));
    }
    if (region_places.events)
        munmap(region_places.events, HISTORY_EVENTS * sizeof(struct gpulimit_event));
    if (region_places.marks)
        munmap(region_places.marks, HISTORY_MARKS * sizeof(struct gpulimit_mark));
    region_places = (struct region_places){0};
}
