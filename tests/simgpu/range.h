/* SPDX-License-Identifier: MIT
 *
 * Sets of disjoint address ranges, looked up by any address within. A record that is to be found
 * embeds a struct range as its first member. The set does not own its records. Built on tsearch(3),
 * whose balanced tree serves because disjoint ranges are ordered, and any that overlap compare
 * equal.
 */
#ifndef SIMGPU_RANGE_H
#define SIMGPU_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t start;
    uint64_t end; /* one past the last */
};

struct range_set {
    void *root;
};

/* false: it overlaps a range of the set, or there is no memory. */
bool range_insert(struct range_set *set, struct range *range);
void range_remove(struct range_set *set, struct range *range);

/* One range of the set that overlaps [start, end), or NULL. */
void *range_find(const struct range_set *set, uint64_t start, uint64_t end);

#endif
