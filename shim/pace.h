/* SPDX-License-Identifier: MIT
 *
 * How often people are told of what repeats itself: of the first at once, of all later ones
 * together, at most once in 10 s, and only when there is one more: nobody waits to tell the rest.
 *
 * No clock and no lock: the caller has both. A zero-initialised struct pace has told nothing.
 */
#ifndef SHIM_PACE_H
#define SHIM_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_NS UINT64_C(10000000000)

struct pace {
    bool has_told;
    uint64_t told_mono_ns; /* when the last time was, by two clocks */
    uint64_t told_time_s;
    uint64_t count, largest_bytes; /* since then */
};

/* What is to be told now. */
struct pace_turn {
    bool is_first;
    uint64_t count, largest_bytes; /* of those that nobody was told of, this one included */
    uint64_t since_time_s;         /* the last time that something was told */
};

/* One more, of so many bytes, at a moment by CLOCK_MONOTONIC and CLOCK_REALTIME. Returns true if it
 * is to be told. */
bool pace_take(struct pace *pace, uint64_t bytes, uint64_t mono_ns, uint64_t time_s,
               struct pace_turn *turn);

#endif
