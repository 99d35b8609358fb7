/* SPDX-License-Identifier: MIT
 *
 * The decimation of timeline.h.
 */
#include "timeline.h"

static void timeline_join(struct timeline_sample *into, const struct timeline_sample *later)
{
    if (later->highest_bytes > into->highest_bytes)
        into->highest_bytes = later->highest_bytes;
    if (later->lowest_bytes < into->lowest_bytes)
        into->lowest_bytes = later->lowest_bytes;
    into->limit_bytes = later->limit_bytes;
    into->denials += later->denials;
}

static void timeline_halve(struct timeline *timeline)
{
    uint32_t halves = (timeline->count + 1) / 2;
    for (uint32_t i = 0; i < halves; i++) {
        timeline->samples[i] = timeline->samples[2 * i];
        if (2 * i + 1 < timeline->count)
            timeline_join(&timeline->samples[i], &timeline->samples[2 * i + 1]);
    }
    timeline->count = halves;
    timeline->interval_ns *= 2;
}

/* The number of the sample that a time lies in, once it has one. */
static uint64_t timeline_place(struct timeline *timeline, uint64_t now, bool *is_halved)
{
    uint64_t elapsed = now > timeline->start_mono_ns ? now - timeline->start_mono_ns : 0;
    *is_halved = false;
    while (elapsed / timeline->interval_ns >= GPULIMIT_TIMELINE_SAMPLES) {
        timeline_halve(timeline);
        *is_halved = true;
    }
    return elapsed / timeline->interval_ns;
}

/* Intervals in which nothing happened: all is as it was. */
static void timeline_fill(struct timeline *timeline, uint64_t place)
{
    while (timeline->count <= place)
        timeline->samples[timeline->count++] =
            (struct timeline_sample){.highest_bytes = timeline->bytes,
                                     .lowest_bytes = timeline->bytes,
                                     .limit_bytes = timeline->limit_bytes};
}

uint32_t timeline_extend(struct timeline *timeline, uint64_t now_mono_ns, uint64_t bytes,
                         uint64_t limit_bytes, uint64_t denials)
{
    bool is_halved;
    if (timeline->interval_ns == 0) {
        timeline->start_mono_ns = now_mono_ns;
        timeline->interval_ns = TIMELINE_FIRST_NS;
        timeline->bytes = bytes;
    }
    uint64_t place = timeline_place(timeline, now_mono_ns, &is_halved);
    uint32_t first = is_halved ? 0 : timeline->count;
    timeline_fill(timeline, place);
    struct timeline_sample *last = &timeline->samples[timeline->count - 1];
    const struct timeline_sample before = *last;
    const struct timeline_sample now = {.highest_bytes = bytes,
                                        .lowest_bytes = bytes,
                                        .limit_bytes = limit_bytes,
                                        .denials = denials - timeline->denials};
    timeline_join(last, &now);
    timeline->end_mono_ns = timeline->start_mono_ns + timeline->count * timeline->interval_ns;
    timeline->bytes = bytes;
    timeline->limit_bytes = limit_bytes;
    timeline->denials = denials;
    bool is_same = before.highest_bytes == last->highest_bytes &&
                   before.lowest_bytes == last->lowest_bytes &&
                   before.limit_bytes == last->limit_bytes && before.denials == last->denials;
    return first == timeline->count && !is_same ? timeline->count - 1 : first;
}
