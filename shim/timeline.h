/* SPDX-License-Identifier: MIT
 *
 * How full a device was, from its first use to now, in a bounded number of samples: each holds the
 * highest and the lowest figure of one interval. When all are used up, neighbours are joined and
 * the interval doubles, so that an hour and a year take the same room.
 *
 * No locking: the caller has a lock. A zero-initialised struct timeline is empty and valid.
 */
#ifndef SHIM_TIMELINE_H
#define SHIM_TIMELINE_H

#include "gpulimit/region.h"

#include <stdbool.h>

enum { TIMELINE_FIRST_NS = 10000000 }; /* the interval at first: the coarse clock's step or more */

struct timeline_sample {
    uint64_t highest_bytes, lowest_bytes;
    uint64_t limit_bytes; /* at the end */
    uint64_t denials;     /* in the interval */
};

struct timeline {
    uint64_t start_mono_ns; /* of samples[0] */
    uint64_t interval_ns;
    uint64_t end_mono_ns; /* of the last sample */
    uint32_t count;
    uint64_t bytes, limit_bytes, denials; /* the last figures */
    struct timeline_sample samples[GPULIMIT_TIMELINE_SAMPLES];
};

/* What is charged now, what the limit is, and how much it has refused since the start. Returns the
 * number of the first sample that has changed by it, timeline->count if none has. */
uint32_t timeline_extend(struct timeline *timeline, uint64_t now_mono_ns, uint64_t bytes,
                         uint64_t limit_bytes, uint64_t denials);

/* The same, without a call where nothing is new: most of the time. */
static inline uint32_t timeline_note(struct timeline *timeline, uint64_t now_mono_ns,
                                     uint64_t bytes, uint64_t limit_bytes, uint64_t denials)
{
    const struct timeline_sample *last =
        &timeline->samples[timeline->count > 0 ? timeline->count - 1 : 0];
    if (now_mono_ns < timeline->end_mono_ns && bytes <= last->highest_bytes &&
        bytes >= last->lowest_bytes && limit_bytes == timeline->limit_bytes &&
        denials == timeline->denials) {
        timeline->bytes = bytes;
        return timeline->count;
    }
    return timeline_extend(timeline, now_mono_ns, bytes, limit_bytes, denials);
}

#endif
