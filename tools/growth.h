/* SPDX-License-Identifier: MIT
 *
 * Which groups of live allocations only grow: those that get more in each window of the process's
 * life, and give little back. Pure, as the view is.
 */
#ifndef GPULIMIT_TOOLS_GROWTH_H
#define GPULIMIT_TOOLS_GROWTH_H

#include "groups.h"
#include "view.h"

#define GROWTH_BYTES_MIN                                                                           \
    (UINT64_C(1) << 20)     /* what has come since start-up and is less is nothing */
#define GROWTH_COUNT_MIN 3u /* likewise */

struct growth_row {
    const struct group *group;

    /* From 1 to 100: the share of windows since start-up in which memory that is still live was
     * born, times the probability, by Laplace's rule of succession, that the next allocation here
     * is not freed. Of the whole group, or of one of its call sites, whichever is higher. */
    unsigned int score;
    uint64_t growth_bytes; /* born after start-up and still live */
    uint64_t growth_count; /* allocations, likewise */
    uint64_t bytes_per_minute;

    /* By all call sites that belong to the group, live or not. */
    uint64_t allocations_total;
    uint64_t frees_total;
};

struct growth {
    struct growth_row *rows; /* the most suspicious first */
    size_t count;
};

/* Judges the groups, which are by site or by Python line, of ledgers read with their history. `top`
 * rows at most; 0: all. Points into the groups and the view, and dies with them. */
void growth_open(const struct view *view, const struct groups *groups, uint64_t top,
                 struct growth *growth);
void growth_close(struct growth *growth);

#endif
