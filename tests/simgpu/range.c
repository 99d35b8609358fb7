// SPDX-License-Identifier: MIT
//
// Sets of disjoint ranges; see range.h.

#include "range.h"

#include <search.h>
#include <stddef.h>

static int range_compare(const void *left, const void *right)
{
    const struct range *a = left, *b = right;

    if (a->end <= b->start)
        return -1;
    return a->start >= b->end;
}

bool range_insert(struct range_set *set, struct range *range)
{
    struct range *const *node = tsearch(range, &set->root, range_compare);

    return node && *node == range;
}

void range_remove(struct range_set *set, struct range *range)
{
    tdelete(range, &set->root, range_compare);
}

void *range_find(const struct range_set *set, uint64_t start, uint64_t end)
{
    struct range key = {start, end};
    struct range *const *node = tfind(&key, &set->root, range_compare);

    return node ? *node : NULL;
}
