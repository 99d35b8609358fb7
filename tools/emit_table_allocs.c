/* SPDX-License-Identifier: MIT
 *
 * Prints live allocations, grouped or one by one, for people.
 */
#include <stdlib.h>

#include "emit_grid.h"
#include "emit_site.h"
#include "emit_table.h"
#include "memory.h"

#define EMIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { EMIT_COLUMNS_MAX = 8 };

static void emit_site(struct grid *grid, const struct groups_item *item)
{
    emit_site_cell(grid, item, GROUPS_BY_SITE);
}

static void emit_python(struct grid *grid, const struct groups_item *item)
{
    emit_site_cell(grid, item, GROUPS_BY_PYTHON);
}

static void emit_name(struct grid *grid, const char *name)
{
    grid_add_foreign(grid, name[0] != '\0' ? name : "(none)");
}

static void emit_tag(struct grid *grid, const struct groups_item *item)
{
    emit_name(grid, sites_get_tag(item->ledger, item->entry));
}

static void emit_stream(struct grid *grid, const struct groups_item *item)
{
    emit_name(grid, sites_get_stream(item->ledger, item->entry));
}

static void emit_kind(struct grid *grid, const struct groups_item *item)
{
    grid_add_text(grid, gpulimit_reader_kind_name(item->entry->kind), NULL);
}

static void emit_api(struct grid *grid, const struct groups_item *item)
{
    grid_add_foreign(grid, emit_site_api(item));
}

static void emit_thread(struct grid *grid, const struct groups_item *item)
{
    grid_add_number(grid, item->entry->thread_id, NULL);
}

static void emit_size(struct grid *grid, const struct groups_item *item)
{
    grid_add_bytes(grid, item->entry->requested_bytes);
}

/* What the groups of a key have in common, and so have a column for. */
static const struct {
    struct {
        struct grid_column column;
        void (*emit)(struct grid *grid, const struct groups_item *item);
    } parts[2]; /* emit NULL: none */
} emit_keys[GROUPS_KEYS] = {
    [GROUPS_BY_SITE] = {{{{"SITE", false, true, 24, 0}, emit_site}}},
    [GROUPS_BY_PYTHON] = {{{{"PYTHON", false, true, 24, 0}, emit_python}}},
    [GROUPS_BY_TAG] = {{{{"TAG", false, true, 16, 0}, emit_tag}}},
    [GROUPS_BY_STREAM] = {{{{"STREAM", false, true, 16, 0}, emit_stream}}},
    [GROUPS_BY_API] = {{{{"KIND", false, false, 8, 0}, emit_kind},
                        {{"API", false, false, 0, 0}, emit_api}}},
    [GROUPS_BY_KIND] = {{{{"KIND", false, false, 8, 0}, emit_kind}}},
    [GROUPS_BY_THREAD] = {{{{"THREAD", true, false, 7, 0}, emit_thread}}},
    [GROUPS_BY_SIZE] = {{{{"SIZE", true, false, 9, 0}, emit_size}}},
};

/* In the column of GROUPS_BY_SITE or GROUPS_BY_PYTHON, or those of GROUPS_BY_API. */
static void emit_part(struct grid *grid, enum groups_part part, enum groups_key key)
{
    bool is_idle = part == GROUPS_IDLE;

    if (key != GROUPS_BY_API) {
        grid_add_text(grid, is_idle ? "(idle in pools)" : "(overhead: context, code, streams)",
                      NULL);
        return;
    }
    grid_add_text(grid, is_idle ? gpulimit_reader_kind_name(GPULIMIT_KIND_ASYNC) : "overhead",
                  NULL);
    grid_add_text(grid, is_idle ? "(idle in pools)" : "(context, code, streams)", NULL);
}

static void emit_group(struct grid *grid, const struct group *group, enum groups_key key)
{
    grid_add_line(grid, NULL);
    grid_add_number(grid, group->device->gpu_index, NULL);
    grid_add_number(grid, (uint64_t)group->ledger->pid, NULL);
    grid_add_bytes(grid, group->bytes);
    if (!group->example) {
        grid_add_text(grid, "-", NULL);
        grid_add_text(grid, "-", NULL);
        grid_add_text(grid, "-", NULL);
        emit_part(grid, group->part, key);
        return;
    }
    grid_add_number(grid, group->count, NULL);
    grid_add_bytes(grid, group->largest_bytes);
    grid_add_age(grid, group->oldest_seconds);
    for (size_t part = 0; part < 2 && emit_keys[key].parts[part].emit; part++) {
        emit_keys[key].parts[part].emit(grid, group->example);
    }
}

static size_t emit_groups(const struct groups *groups, const struct emit_style *style)
{
    static const struct grid_column common[] = {
        {"GPU", true, false, 3, 0},   {"PID", true, false, 6, 0},     {"BYTES", true, false, 8, 0},
        {"COUNT", true, false, 6, 0}, {"LARGEST", true, false, 8, 0}, {"OLDEST", true, false, 6, 0},
    };
    struct grid_column columns[EMIT_COLUMNS_MAX];
    size_t count = 0;
    struct grid grid;

    for (; count < EMIT_COUNT(common); count++) {
        columns[count] = common[count];
    }
    for (size_t part = 0; part < 2 && emit_keys[groups->key].parts[part].emit; part++) {
        columns[count++] = emit_keys[groups->key].parts[part].column;
    }
    grid_open(columns, count, style, &grid);
    for (size_t i = 0; i < groups->count; i++) {
        emit_group(&grid, &groups->list[i], groups->key);
    }
    return grid_close(&grid);
}

static size_t emit_groups_with_stacks(const struct groups *groups, const struct emit_style *style)
{
    const struct group **list = memory_check(calloc(groups->count + 1, sizeof(struct group *)));
    struct emit_style inner = *style;
    char *text = NULL;
    size_t bytes;
    size_t lines;

    for (size_t i = 0; i < groups->count; i++) {
        list[i] = &groups->list[i];
    }
    inner.out = memory_check(open_memstream(&text, &bytes));
    lines = emit_groups(groups, &inner);
    memory_check(fclose(inner.out) == 0 ? text : NULL);
    lines += emit_site_weave(text, list, groups->count, style);
    free(text);
    free((void *)list);
    return lines;
}

size_t emit_table_groups(const struct groups *groups, const struct emit_style *style)
{
    return style->has_stacks ? emit_groups_with_stacks(groups, style) : emit_groups(groups, style);
}

size_t emit_table_allocations(const struct view *view, const struct groups *groups,
                              const struct emit_style *style)
{
    static const struct grid_column columns[] = {
        {"GPU", true, false, 3, 0},       {"PID", true, false, 6, 0},
        {"ADDRESS", false, false, 14, 0}, {"SIZE", true, false, 8, 0},
        {"COMMITTED", true, false, 9, 1}, {"KIND", false, false, 8, 0},
        {"API", false, false, 0, 0},      {"THREAD", true, false, 7, 2},
        {"AGE", true, false, 6, 0},       {"SITE", false, true, 24, 0},
    };
    bool has_sites = groups->key == GROUPS_BY_SITE;
    struct grid grid;

    grid_open(columns, EMIT_COUNT(columns) - !has_sites, style, &grid);
    for (size_t i = 0; i < groups->item_count; i++) {
        const struct groups_item *item = &groups->items[i];

        grid_add_line(&grid, NULL);
        grid_add_number(&grid, item->device->gpu_index, NULL);
        grid_add_number(&grid, (uint64_t)item->ledger->pid, NULL);
        grid_add_address(&grid, item->entry->address);
        grid_add_bytes(&grid, item->entry->requested_bytes);
        grid_add_bytes(&grid, item->entry->committed_bytes);
        emit_kind(&grid, item);
        emit_api(&grid, item);
        emit_thread(&grid, item);
        grid_add_age(&grid, view_get_entry_age(view, item->ledger, item->entry));
        if (has_sites) {
            emit_site(&grid, item);
        }
    }
    return grid_close(&grid);
}
