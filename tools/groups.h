/* SPDX-License-Identifier: MIT
 *
 * Live allocations, added up by what they have in common. Pure, as the view is. A new way to group
 * is a row of a table in groups.c.
 */
#ifndef GPULIMIT_TOOLS_GROUPS_H
#define GPULIMIT_TOOLS_GROUPS_H

#include "sites.h"
#include "view.h"

enum groups_key {
    GROUPS_BY_DEFAULT, /* by site if any allocation has one, else by API */
    GROUPS_BY_SITE,
    GROUPS_BY_PYTHON,
    GROUPS_BY_API,
    GROUPS_BY_KIND,
    GROUPS_BY_TAG,
    GROUPS_BY_STREAM,
    GROUPS_BY_THREAD,
    GROUPS_BY_SIZE,
    GROUPS_KEYS,
};

struct groups_filter {
    enum groups_key key;
    uint64_t min_bytes;   /* smaller allocations are left out */
    uint64_t min_seconds; /* younger ones too */
    uint64_t top;         /* lines; 0: all */
    bool is_list;         /* each allocation by itself: no groups */
};

/* One allocation that passed the filters. */
struct groups_item {
    const struct gpulimit_ledger *ledger;
    const struct gpulimit_ledger_device *device;
    const struct gpulimit_ledger_entry *entry;
    const struct gpulimit_site *site; /* NULL unknown */
    uint32_t frame; /* of the site, that it is grouped by; SITES_NO_FRAME if by another key */
    uint64_t bytes; /* by the process's way of counting: committed, or requested */
};

/* What a group is of. By site, by Python line and by API there are groups of what is charged beyond
 * the allocations, so that the sum is what is charged. */
enum groups_part {
    GROUPS_ALLOCATIONS,
    GROUPS_IDLE,     /* what the process's pools hold in reserve and no allocation uses */
    GROUPS_OVERHEAD, /* what the driver takes outside any allocation */
};

/* Allocations of one process on one device that agree in the key, or one of the parts beyond. */
struct group {
    enum groups_part part;
    const struct gpulimit_ledger *ledger;
    const struct gpulimit_ledger_device *device;
    const struct groups_item *example; /* the first of its allocations, which lie side by side,
                                          those of the same site together; else NULL */
    uint64_t bytes;
    uint64_t count;
    uint64_t largest_bytes;
    uint64_t oldest_seconds;
};

struct groups {
    struct groups_item *items; /* largest first if they are listed, else in no order */
    size_t item_count;
    struct group *list; /* most bytes first; empty if the items are listed */
    size_t count;
    enum groups_key key; /* never GROUPS_BY_DEFAULT */
};

/* Adds up the entries of the view's devices. Points into the view and dies with it. */
void groups_open(const struct view *view, const struct groups_filter *filter,
                 struct groups *groups);
void groups_close(struct groups *groups);

/* By the name on the command line; false if there is no such key. */
bool groups_find_key(const char *name, enum groups_key *key);

/* The names, for a message: "api, kind, ...". */
const char *groups_list_keys(void);

#endif
