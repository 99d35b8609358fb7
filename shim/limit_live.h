/* SPDX-License-Identifier: MIT
 *
 * Who holds what on a device at one moment, in full, for a report: the largest call sites one by
 * one, all else in sums, so that
 *   top + others + without_site + idle + under_way + overhead = used
 * to the byte. For a message, which has room for three: limit_holders.h.
 */
#ifndef SHIM_LIMIT_LIVE_H
#define SHIM_LIMIT_LIVE_H

#include "region.h"
#include "sites.h"

enum { LIMIT_LIVE_SITES = 50 };

struct limit_live_site {
    uint32_t site;
    uint64_t bytes;
    uint64_t count;          /* live allocations */
    uint64_t oldest_mono_ns; /* when the oldest of them was made */
};

struct limit_live {
    struct limit_live_site top[LIMIT_LIVE_SITES]; /* the largest first */
    unsigned top_count;
    uint32_t others; /* call sites beyond those */
    uint64_t others_bytes, others_count;
    uint64_t without_site_bytes, without_site_count; /* allocations that no call site is known of */
    uint64_t idle_bytes;      /* what pools, graphs and shared blocks hold and no allocation */
    uint64_t under_way_bytes; /* requests that the driver has not answered yet */
    uint64_t overhead_bytes;
    uint64_t used_bytes; /* of all of them */
    struct region_totals totals;
    /* What sites are, by their numbers: stays until a fork. NULL: not known. */
    const struct sites_called *called;
    const struct sites_kept *kept;
};

/* Takes the books' lock; see limit.h for threads and forks. */
void limit_live_take(unsigned device, struct limit_live *live);

#endif
