/* SPDX-License-Identifier: MIT
 *
 * Live allocations, added up by what they have in common.
 */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

typedef int groups_compare_function(const struct groups_item *a, const struct groups_item *b);

static int groups_compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int groups_compare_kinds(const struct groups_item *a, const struct groups_item *b)
{
    return groups_compare_numbers(a->entry->kind, b->entry->kind);
}

/* By name: two versions of a function are one to whoever reads the table only if they share the
 * name. */
static int groups_compare_apis(const struct groups_item *a, const struct groups_item *b)
{
    int order = groups_compare_kinds(a, b);

    return order != 0 ? order
                      : strcmp(gpulimit_reader_api_name(a->ledger, a->entry->api),
                               gpulimit_reader_api_name(b->ledger, b->entry->api));
}

static int groups_compare_threads(const struct groups_item *a, const struct groups_item *b)
{
    return groups_compare_numbers(a->entry->thread_id, b->entry->thread_id);
}

static int groups_compare_sizes(const struct groups_item *a, const struct groups_item *b)
{
    return groups_compare_numbers(a->entry->requested_bytes, b->entry->requested_bytes);
}

/* What --by accepts. compare() is 0 for allocations that belong into one group; the columns that
 * tell the groups apart are emit_table.c's. */
static const struct {
    const char *name;
    groups_compare_function *compare;
} groups_keys[] = {
    [GROUPS_BY_API] = {"api", groups_compare_apis},
    [GROUPS_BY_KIND] = {"kind", groups_compare_kinds},
    [GROUPS_BY_THREAD] = {"thread", groups_compare_threads},
    [GROUPS_BY_SIZE] = {"size", groups_compare_sizes},
};

enum { GROUPS_KEYS = sizeof(groups_keys) / sizeof(groups_keys[0]) };

bool groups_find_key(const char *name, enum groups_key *key)
{
    for (size_t i = 0; i < GROUPS_KEYS; i++) {
        if (strcmp(name, groups_keys[i].name) == 0) {
            *key = (enum groups_key)i;
            return true;
        }
    }
    return false;
}

const char *groups_list_keys(void)
{
    static char list[128];

    list[0] = '\0';
    for (size_t i = 0; i < GROUPS_KEYS; i++) {
        strncat(list, i > 0 ? ", " : "", sizeof(list) - strlen(list) - 1);
        strncat(list, groups_keys[i].name, sizeof(list) - strlen(list) - 1);
    }
    return list;
}

/* Same process, same device, same key: a group. */
static int groups_compare_items(const struct groups_item *a, const struct groups_item *b,
                                enum groups_key key)
{
    if (a->device != b->device) { /* each belongs to one ledger */
        return groups_compare_numbers((uintptr_t)a->device, (uintptr_t)b->device);
    }
    return groups_keys[key].compare(a, b);
}

static int groups_sort_by_key(const void *first, const void *second, void *key)
{
    return groups_compare_items(first, second, *(const enum groups_key *)key);
}

static int groups_sort_by_size(const void *first, const void *second)
{
    const struct groups_item *a = first;
    const struct groups_item *b = second;
    int order = groups_compare_numbers(b->bytes, a->bytes);

    return order != 0 ? order : groups_compare_numbers(a->entry->address, b->entry->address);
}

/* What is no allocation behind allocations of the same size. */
static uint64_t groups_get_address(const struct group *group)
{
    return group->example ? group->example->entry->address : UINT64_MAX;
}

static int groups_sort_by_bytes(const void *first, const void *second)
{
    const struct group *a = first;
    const struct group *b = second;
    int order = groups_compare_numbers(b->bytes, a->bytes);

    if (order == 0) {
        order = groups_compare_numbers(b->count, a->count);
    }
    if (order == 0) {
        order = groups_compare_numbers(groups_get_address(a), groups_get_address(b));
    }
    return order != 0 ? order : groups_compare_numbers(a->part, b->part);
}

static void groups_add_items(const struct view_row *row, uint64_t min_bytes, struct groups *groups)
{
    const struct gpulimit_ledger *ledger = row->ledger;

    for (uint32_t i = 0; row->device && i < ledger->entry_count; i++) {
        const struct gpulimit_ledger_entry *entry = &ledger->entries[i];

        if (&ledger->devices[entry->device] != row->device || entry->requested_bytes < min_bytes) {
            continue;
        }
        groups->items = memory_grow(groups->items, groups->item_count, sizeof(*groups->items));
        groups->items[groups->item_count++] = (struct groups_item){
            .ledger = ledger,
            .device = row->device,
            .entry = entry,
            .bytes = ledger->count_mode == GPULIMIT_COUNT_PROCESS ? entry->committed_bytes
                                                                  : entry->requested_bytes,
        };
    }
}

/* The items of a group lie side by side. */
static void groups_add_up(const struct view *view, struct groups *groups)
{
    for (size_t i = 0; i < groups->item_count; i++) {
        const struct groups_item *item = &groups->items[i];
        uint64_t seconds = view_get_entry_age(view, item->ledger, item->entry);
        struct group *group;

        if (i == 0 || groups_compare_items(item - 1, item, groups->key) != 0) {
            groups->list = memory_grow(groups->list, groups->count, sizeof(*groups->list));
            groups->list[groups->count++] =
                (struct group){.ledger = item->ledger, .device = item->device, .example = item};
        }
        group = &groups->list[groups->count - 1];
        group->bytes += item->bytes;
        group->count++;
        group->largest_bytes =
            item->bytes > group->largest_bytes ? item->bytes : group->largest_bytes;
        group->oldest_seconds = seconds > group->oldest_seconds ? seconds : group->oldest_seconds;
    }
}

static void groups_add_part(const struct view_row *row, enum groups_part part, uint64_t bytes,
                            struct groups *groups)
{
    groups->list = memory_grow(groups->list, groups->count, sizeof(*groups->list));
    groups->list[groups->count++] =
        (struct group){.part = part, .ledger = row->ledger, .device = row->device, .bytes = bytes};
}

/* An entry of a pool is charged as the pool's reserve, of which it is a part; the rest is nobody's.
 */
static void groups_add_idle(const struct view_row *row, struct groups *groups)
{
    const struct gpulimit_ledger *ledger = row->ledger;
    uint64_t used_bytes = 0;
    uint64_t held_bytes = row->device ? row->device->by_kind[GPULIMIT_KIND_ASYNC].bytes : 0;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        if (&ledger->devices[ledger->entries[i].device] == row->device &&
            ledger->entries[i].kind == GPULIMIT_KIND_ASYNC) {
            used_bytes += ledger->entries[i].committed_bytes;
        }
    }
    if (ledger->count_mode == GPULIMIT_COUNT_PROCESS && held_bytes > used_bytes) {
        groups_add_part(row, GROUPS_IDLE, held_bytes - used_bytes, groups);
    }
}

static void groups_add_overhead(const struct view_row *row, struct groups *groups)
{
    if (row->device && row->device->overhead_bytes > 0 &&
        row->ledger->count_mode == GPULIMIT_COUNT_PROCESS) {
        groups_add_part(row, GROUPS_OVERHEAD, row->device->overhead_bytes, groups);
    }
}

static size_t groups_cut(size_t count, uint64_t top)
{
    return top > 0 && count > top ? (size_t)top : count;
}

void groups_open(const struct view *view, const struct groups_filter *filter, struct groups *groups)
{
    enum groups_key key = filter->key;

    *groups = (struct groups){.key = key};
    for (size_t i = 0; i < view->row_count; i++) {
        groups_add_items(&view->rows[i], filter->min_bytes, groups);
    }
    if (filter->is_list && groups->item_count > 0) {
        qsort(groups->items, groups->item_count, sizeof(*groups->items), groups_sort_by_size);
    }
    if (filter->is_list) {
        groups->item_count = groups_cut(groups->item_count, filter->top);
        return;
    }
    if (groups->item_count > 0) {
        qsort_r(groups->items, groups->item_count, sizeof(*groups->items), groups_sort_by_key,
                &key);
    }
    groups_add_up(view, groups);
    for (size_t i = 0; key == GROUPS_BY_API && filter->min_bytes == 0 && i < view->row_count; i++) {
        groups_add_idle(&view->rows[i], groups);
        groups_add_overhead(&view->rows[i], groups);
    }
    if (groups->count > 0) {
        qsort(groups->list, groups->count, sizeof(*groups->list), groups_sort_by_bytes);
    }
    groups->count = groups_cut(groups->count, filter->top);
}

void groups_close(struct groups *groups)
{
    free(groups->items);
    free(groups->list);
    *groups = (struct groups){0};
}
