/* SPDX-License-Identifier: MIT
 *
 * Which groups of live allocations only grow.
 *
 * Memory that stays is no leak by itself: weights stay too. They came at the start, though, and a
 * leak goes on, so what counts is in how many windows of time something was born that is still
 * live. A cache, and each step's own tensors, fail that too: what is live of them is young. Where
 * they do not quite, most of what was asked for has been freed, and the second factor is small.
 */
#include "growth.h"

#include <stdlib.h>

#include "growth_windows.h"
#include "memory.h"

struct growth_totals {
    uint64_t allocations;
    uint64_t frees;
};

/* A group that is named by a frame, to be found by it. */
struct growth_name {
    struct sites_frame frame;
    struct growth_row *row;
};

/* One device of one process, while its groups are judged. */
struct growth_device {
    const struct view_row *row;
    const struct groups *groups;
    struct growth_windows windows;
    size_t *latest;               /* for each window: the number of the part that was seen in it */
    size_t parts;                 /* measured so far */
    struct growth_totals *totals; /* by site, from 0 */
    struct growth_row *rows;      /* those of the device's groups */
    size_t row_count;
};

static uint32_t growth_get_site(const struct groups_item *item)
{
    return item->site ? item->entry->site : 0;
}

/* Some of a group's allocations, which lie side by side. */
struct growth_part {
    const struct groups_item *first;
    uint64_t count;
    uint64_t growth_bytes; /* as in growth_row, likewise below */
    uint64_t growth_count;
    double share; /* of windows */
};

/* Fills in the rest of a part. */
static void growth_measure(struct growth_device *device, struct growth_part *part)
{
    size_t seen = 0;

    device->parts++; /* what was seen for another part is not seen yet */
    part->growth_bytes = 0;
    part->growth_count = 0;
    for (uint64_t i = 0; i < part->count; i++) {
        uint64_t born_ns = part->first[i].entry->born_mono_ns;
        size_t window = growth_windows_find(&device->windows, born_ns);

        if (growth_windows_are_after_start(&device->windows, born_ns)) {
            part->growth_bytes += part->first[i].bytes;
            part->growth_count++;
        }
        if (window != GROWTH_NO_WINDOW && device->latest[window] != device->parts) {
            device->latest[window] = device->parts;
            seen++;
        }
    }
    part->share = device->windows.count > 0 ? (double)seen / (double)device->windows.count : 0;
}

static void growth_add_totals(struct growth_row *row, const struct growth_totals *totals)
{
    row->allocations_total += totals->allocations;
    row->frees_total += totals->frees;
}

static int growth_sort_names(const void *first, const void *second)
{
    return sites_compare_frames(&((const struct growth_name *)first)->frame,
                                &((const struct growth_name *)second)->frame);
}

/* Also of call sites that hold nothing now, but go by the same frame. */
static void growth_count_named(struct growth_device *device, const struct growth_name *names,
                               size_t count)
{
    const struct gpulimit_ledger *ledger = device->row->ledger;

    for (uint32_t number = 1; count > 0 && number <= ledger->site_count; number++) {
        const struct gpulimit_site *site = gpulimit_reader_site(ledger, number);
        uint32_t frame = SITES_NO_FRAME;
        struct growth_name wanted;
        struct growth_name *found;

        if (site && device->totals[number].allocations > 0) {
            frame = device->groups->key == GROUPS_BY_PYTHON ? sites_choose_python(ledger, site)
                                                            : sites_choose(ledger, site);
        }
        if (frame == SITES_NO_FRAME) {
            continue;
        }
        wanted.frame = sites_get_frame(ledger, site, frame);
        found = bsearch(&wanted, names, count, sizeof(*names), growth_sort_names);
        if (found) {
            growth_add_totals(found->row, &device->totals[number]);
        }
    }
}

/* A group without a frame is of several call sites, or of none: those of its allocations, which lie
 * together, count. */
static void growth_count_unnamed(const struct growth_device *device, struct growth_row *row)
{
    for (uint64_t i = 0; i < row->group->count; i++) {
        const struct groups_item *item = &row->group->example[i];

        if (i == 0 || growth_get_site(item) != growth_get_site(item - 1)) {
            growth_add_totals(row, &device->totals[growth_get_site(item)]);
        }
    }
}

static void growth_count(struct growth_device *device)
{
    struct growth_name *names =
        memory_check(calloc(device->row_count + 1, sizeof(struct growth_name)));
    size_t count = 0;

    for (size_t i = 0; i < device->row_count; i++) {
        const struct groups_item *item = device->rows[i].group->example;

        if (item->frame == SITES_NO_FRAME) {
            growth_count_unnamed(device, &device->rows[i]);
        } else {
            names[count++] = (struct growth_name){
                sites_get_frame(item->ledger, item->site, item->frame), &device->rows[i]};
        }
    }
    qsort(names, count, sizeof(*names), growth_sort_names);
    growth_count_named(device, names, count);
    free(names);
}

/* What a ledger without tallies leaves open, and what a busy one tells of two moments. */
static void growth_mend_totals(struct growth_row *row)
{
    if (row->allocations_total < row->group->count) {
        row->allocations_total = row->group->count;
    }
    if (row->frees_total > row->allocations_total) {
        row->frees_total = row->allocations_total;
    }
}

static bool growth_is_some(uint64_t bytes, uint64_t count)
{
    return bytes >= GROWTH_BYTES_MIN && count >= GROWTH_COUNT_MIN;
}

static unsigned int growth_score(double share, uint64_t allocations, uint64_t frees)
{
    double stays = 1 - ((double)frees + 1) / ((double)allocations + 2);

    return (unsigned int)(100 * share * stays + 0.5);
}

/* The highest score of a single call site of the group: a function that all the program allocates
 * by is named by one line, and a leak among its callers must not hide behind the others. */
static unsigned int growth_score_sites(struct growth_device *device, const struct group *group)
{
    unsigned int highest = 0;

    for (uint64_t i = 0; i < group->count;) {
        struct growth_part part = {.first = &group->example[i]};
        uint32_t site = growth_get_site(part.first);
        const struct growth_totals *totals = &device->totals[site];
        unsigned int score;

        while (i < group->count && growth_get_site(&group->example[i]) == site) {
            part.count++;
            i++;
        }
        if (site == 0 || totals->frees > totals->allocations ||
            totals->allocations < part.count) { /* of no one place, or nothing is known of it */
            continue;
        }
        growth_measure(device, &part);
        score = growth_score(part.share, totals->allocations, totals->frees);
        if (growth_is_some(part.growth_bytes, part.growth_count) && score > highest) {
            highest = score;
        }
    }
    return highest;
}

static void growth_judge(struct growth_device *device, struct growth_row *row)
{
    struct growth_part whole = {.first = row->group->example, .count = row->group->count};
    double minutes = (double)growth_windows_get_span(&device->windows) / 60e9;
    unsigned int highest = growth_score_sites(device, row->group);

    growth_measure(device, &whole);
    growth_mend_totals(row);
    row->growth_bytes = whole.growth_bytes;
    row->growth_count = whole.growth_count;
    row->score = growth_score(whole.share, row->allocations_total, row->frees_total);
    if (highest > row->score) {
        row->score = highest;
    }
    if (minutes > 0 && (double)row->growth_bytes / minutes < 0x1p63) {
        row->bytes_per_minute = (uint64_t)((double)row->growth_bytes / minutes + 0.5);
    }
}

static void growth_add_tallies(struct growth_device *device)
{
    const struct gpulimit_ledger *ledger = device->row->ledger;

    for (uint32_t i = 0; i < ledger->tally_count; i++) {
        const struct gpulimit_ledger_tally *tally = &ledger->tallies[i];

        if (&ledger->devices[tally->device] == device->row->device) {
            uint32_t site = gpulimit_reader_site(ledger, tally->site) ? tally->site : 0;

            device->totals[site].allocations += tally->allocations_total;
            device->totals[site].frees += tally->frees_total;
        }
    }
}

static void growth_gather(struct growth_device *device)
{
    for (size_t i = 0; i < device->groups->count; i++) {
        const struct group *group = &device->groups->list[i];

        if (group->device == device->row->device && group->example) {
            device->rows = memory_grow(device->rows, device->row_count, sizeof(*device->rows));
            device->rows[device->row_count++] = (struct growth_row){.group = group};
        }
    }
}

static void growth_add_device(const struct view *view, const struct view_row *view_row,
                              const struct groups *groups, struct growth *growth)
{
    struct growth_device device = {.row = view_row, .groups = groups};

    growth_gather(&device);
    growth_windows_open(view, view_row->ledger, view_row->device, &device.windows);
    device.latest = memory_check(calloc(device.windows.count + 1, sizeof(*device.latest)));
    device.totals = memory_check(
        calloc((size_t)view_row->ledger->site_count + 1, sizeof(struct growth_totals)));
    growth_add_tallies(&device);
    growth_count(&device);
    for (size_t i = 0; i < device.row_count; i++) {
        struct growth_row *row = &device.rows[i];

        growth_judge(&device, row);
        if (row->score > 0 && growth_is_some(row->growth_bytes, row->growth_count)) {
            growth->rows = memory_grow(growth->rows, growth->count, sizeof(*growth->rows));
            growth->rows[growth->count++] = *row;
        }
    }
    free(device.rows);
    free(device.totals);
    free(device.latest);
    growth_windows_close(&device.windows);
}

static int growth_sort_rows(const void *first, const void *second)
{
    const struct growth_row *a = first;
    const struct growth_row *b = second;

    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->bytes_per_minute != b->bytes_per_minute) {
        return a->bytes_per_minute > b->bytes_per_minute ? -1 : 1;
    }
    return a->group < b->group ? -1 : a->group > b->group; /* as the groups are sorted */
}

void growth_open(const struct view *view, const struct groups *groups, uint64_t top,
                 struct growth *growth)
{
    *growth = (struct growth){0};
    for (size_t i = 0; i < view->row_count; i++) {
        if (view->rows[i].device) {
            growth_add_device(view, &view->rows[i], groups, growth);
        }
    }
    if (growth->count > 0) {
        qsort(growth->rows, growth->count, sizeof(*growth->rows), growth_sort_rows);
    }
    if (top > 0 && growth->count > top) {
        growth->count = (size_t)top;
    }
}

void growth_close(struct growth *growth)
{
    free(growth->rows);
    *growth = (struct growth){0};
}
