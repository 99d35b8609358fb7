/* SPDX-License-Identifier: MIT
 *
 * What each call site holds on each device, and what it held when the device was fullest. The peak
 * is kept without copying anything when it is reached: a site that changes afterwards saves what it
 * had before, the first time, and of all others what they have now is what they had then.
 *
 * No locking: the caller has a lock. A zero-initialised struct tallies is empty and valid. Bytes
 * are those that count against the limit.
 */
#ifndef SHIM_TALLY_H
#define SHIM_TALLY_H

#include "table.h"

#include <stdint.h>

enum { TALLY_NONE = 0, TALLY_MOST = 8192 };

struct tally {
    uint32_t device, site; /* site 0: of allocations whose site is not known */
    uint64_t bytes;        /* live */
    uint64_t allocations_total, frees_total;
    uint64_t peak_epoch; /* the number of the device's peak that the two below are of */
    uint64_t peak_bytes, peak_count;
};

struct tallies {
    struct tally *list; /* by number, from 1; list[0] is nobody's */
    uint32_t count, capacity;
    struct table by_place; /* site and device -> number */
    uint64_t last_key;     /* the place that was looked for last, and its number */
    uint32_t last_number;
};

/* The number of the tally of a site on a device, made if there is none. TALLY_NONE: there are too
 * many, or no memory; then nothing is counted. */
uint32_t tally_find(struct tallies *tallies, unsigned device, uint32_t site);

/* One allocation more, or one less, of so many bytes, after the device's peak number `epoch`. */
void tally_add(struct tallies *tallies, uint32_t number, uint64_t bytes, uint64_t epoch);
void tally_remove(struct tallies *tallies, uint32_t number, uint64_t bytes, uint64_t epoch);

/* How many allocations are live. */
static inline uint64_t tally_live(const struct tally *tally)
{
    return tally->allocations_total - tally->frees_total;
}

/* What a tally held at its device's peak of that number, the latest. */
uint64_t tally_peak_bytes(const struct tally *tally, uint64_t epoch);
uint64_t tally_peak_count(const struct tally *tally, uint64_t epoch);

void tally_clear(struct tallies *tallies);

#endif
