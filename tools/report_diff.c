/* SPDX-License-Identifier: MIT
 *
 * Two runs side by side: figures that changed and that did not, then the sites at the peak that
 * grew, shrank, came or went, those that changed most first.
 */
#include "report_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit_grid.h"
#include "memory.h"

enum { REPORT_CHANGES_MAX = 2 * REPORT_SITES };

/* A site at the peak of either run. */
struct report_change {
    const char *where;
    uint64_t before, after;
};

static uint64_t report_get_change(const struct report_change *change)
{
    return change->after > change->before ? change->after - change->before
                                          : change->before - change->after;
}

static int report_compare_changes(const void *first, const void *second)
{
    const struct report_change *a = first;
    const struct report_change *b = second;
    uint64_t change_a = report_get_change(a);
    uint64_t change_b = report_get_change(b);

    if (change_a != change_b) {
        return change_a > change_b ? -1 : 1;
    }
    return strcmp(a->where, b->where);
}

static const struct report_site *report_find_site(const struct report_holders *holders,
                                                  const char *where)
{
    for (unsigned int i = 0; i < holders->site_count; i++) {
        if (strcmp(holders->sites[i].where, where) == 0) {
            return &holders->sites[i];
        }
    }
    return NULL;
}

/* A site that is not listed, of a run that lists only its largest, may be among the others: then
 * how it changed is not known. */
static bool report_is_known(const struct report_site *site, const struct report_holders *holders)
{
    return site || holders->others == 0;
}

static size_t report_gather_changes(const struct report_holders *before,
                                    const struct report_holders *after,
                                    struct report_change changes[REPORT_CHANGES_MAX])
{
    size_t count = 0;

    for (unsigned int i = 0; i < before->site_count; i++) {
        const struct report_site *site = &before->sites[i];
        const struct report_site *now = report_find_site(after, site->where);

        if ((!now || now->bytes != site->bytes) && report_is_known(now, after)) {
            changes[count++] =
                (struct report_change){site->where, site->bytes, now ? now->bytes : 0};
        }
    }
    for (unsigned int i = 0; i < after->site_count; i++) {
        const struct report_site *site = &after->sites[i];
        const struct report_site *then = report_find_site(before, site->where);

        if (!then && report_is_known(then, before)) {
            changes[count++] = (struct report_change){site->where, 0, site->bytes};
        }
    }
    if (count > 0) {
        qsort(changes, count, sizeof(*changes), report_compare_changes);
    }
    return count;
}

static void report_add_percent(struct grid *grid, uint64_t before, uint64_t after)
{
    char *cell;

    if (before == after) {
        grid_add_text(grid, "-", NULL);
    } else if (before == 0) {
        grid_add_text(grid, "new", NULL);
    } else if (after == 0) {
        grid_add_text(grid, "gone", NULL);
    } else {
        cell = memory_print("%+.1f%%", ((double)after / (double)before - 1) * 100);
        grid_add_text(grid, cell, NULL);
        free(cell);
    }
}

static void report_add_bytes(struct grid *grid, unsigned int gpu_index, uint64_t before,
                             uint64_t after, const char *what)
{
    grid_add_line(grid, NULL);
    grid_add_number(grid, gpu_index, NULL);
    grid_add_bytes(grid, before);
    grid_add_bytes(grid, after);
    grid_add_change(grid, before, after);
    report_add_percent(grid, before, after);
    grid_add_foreign(grid, what);
}

static void report_add_count(struct grid *grid, unsigned int gpu_index, uint64_t before,
                             uint64_t after, const char *what)
{
    uint64_t change = after > before ? after - before : before - after;
    char *cell = memory_print("%s%" PRIu64,
                              after > before   ? "+"
                              : before > after ? "-"
                                               : "",
                              change);

    grid_add_line(grid, NULL);
    grid_add_number(grid, gpu_index, NULL);
    grid_add_number(grid, before, NULL);
    grid_add_number(grid, after, NULL);
    grid_add_text(grid, cell, NULL);
    report_add_percent(grid, before, after);
    grid_add_text(grid, what, NULL);
    free(cell);
}

static uint64_t report_get_live(const struct report_holders *end)
{
    return end->bytes - end->idle_bytes - end->overhead_bytes;
}

static void report_add_figures(struct grid *grid, const struct report_device *before,
                               const struct report_device *after)
{
    unsigned int gpu = after->gpu_index;

    report_add_bytes(grid, gpu, before->peak.bytes, after->peak.bytes, "peak");
    report_add_bytes(grid, gpu, before->peak.overhead_bytes, after->peak.overhead_bytes,
                     "overhead at the peak");
    report_add_bytes(grid, gpu, before->peak.idle_bytes, after->peak.idle_bytes,
                     "idle in pools at the peak");
    report_add_bytes(grid, gpu, before->largest_bytes, after->largest_bytes, "largest allocation");
    report_add_count(grid, gpu, before->allocations_total, after->allocations_total, "allocations");
    report_add_count(grid, gpu, before->denials, after->denials, "requests refused");
    report_add_count(grid, gpu, before->denials_recovered, after->denials_recovered,
                     "of those, later succeeded");
    report_add_bytes(grid, gpu, report_get_live(&before->end), report_get_live(&after->end),
                     "live at exit");
}

static void report_add_changes(struct grid *grid, const struct report_device *before,
                               const struct report_device *after)
{
    struct report_change changes[REPORT_CHANGES_MAX];
    size_t count = report_gather_changes(&before->peak, &after->peak, changes);

    for (size_t i = 0; i < count; i++) {
        char *what = memory_print("at the peak, by %s", changes[i].where);

        report_add_bytes(grid, after->gpu_index, changes[i].before, changes[i].after, what);
        free(what);
    }
}

/* A GPU that only one run has used is compared with one where nothing happened. */
static struct report_device report_find_device(const struct record *record, unsigned int gpu_index)
{
    for (size_t i = 0; i < record->device_count; i++) {
        if (record->devices[i].figures.gpu_index == gpu_index) {
            return record->devices[i].figures;
        }
    }
    return (struct report_device){.gpu_index = gpu_index, .gpu_uuid = ""};
}

static bool report_has_device(const struct record *record, unsigned int gpu_index)
{
    for (size_t i = 0; i < record->device_count; i++) {
        if (record->devices[i].figures.gpu_index == gpu_index) {
            return true;
        }
    }
    return false;
}

static void report_compare_device(struct grid *grid, const struct record *before,
                                  const struct record *after, unsigned int gpu_index)
{
    struct report_device then = report_find_device(before, gpu_index);
    struct report_device now = report_find_device(after, gpu_index);

    report_add_figures(grid, &then, &now);
    report_add_changes(grid, &then, &now);
}

static void report_say_limits(const struct record *record, const char *name,
                              const struct emit_style *style)
{
    struct text text;

    report_tell_head(&text, name, &record->head);
    report_print_text(&text, style);
}

void report_print_diff(const struct record *before, const struct record *after,
                       const struct emit_style *style)
{
    static const struct grid_column columns[] = {
        {"GPU", true, false, 3, 0},    {"A", true, false, 8, 0}, {"B", true, false, 8, 0},
        {"CHANGE", true, false, 8, 0}, {"%", true, false, 7, 0}, {"WHAT", false, true, 24, 0},
    };
    struct grid grid;

    report_say_limits(before, "A: ", style);
    report_say_limits(after, "B: ", style);
    grid_open(columns, sizeof(columns) / sizeof(columns[0]), style, &grid);
    for (size_t i = 0; i < before->device_count; i++) {
        report_compare_device(&grid, before, after, before->devices[i].figures.gpu_index);
    }
    for (size_t i = 0; i < after->device_count; i++) {
        if (!report_has_device(before, after->devices[i].figures.gpu_index)) {
            report_compare_device(&grid, before, after, after->devices[i].figures.gpu_index);
        }
    }
    grid_close(&grid);
}
