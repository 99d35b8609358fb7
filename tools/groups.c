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

/* What has no frame has at least the API that was called. */
static int groups_compare_places(const struct groups_item *a, const struct groups_item *b)
{
    struct sites_frame frame_a;
    struct sites_frame frame_b;

    if (a->frame == SITES_NO_FRAME || b->frame == SITES_NO_FRAME) {
        int order = (a->frame == SITES_NO_FRAME) - (b->frame == SITES_NO_FRAME);

        return order != 0 ? order : groups_compare_apis(a, b);
    }
    if (a->site == b->site) {
        return groups_compare_numbers(a->frame, b->frame);
    }
    frame_a = sites_get_frame(a->ledger, a->site, a->frame);
    frame_b = sites_get_frame(b->ledger, b->site, b->frame);
    return sites_compare_frames(&frame_a, &frame_b);
}

static int groups_compare_tags(const struct groups_item *a, const struct groups_item *b)
{
    return strcmp(sites_get_tag(a->ledger, a->entry), sites_get_tag(b->ledger, b->entry));
}

static int groups_compare_streams(const struct groups_item *a, const struct groups_item *b)
{
    return strcmp(sites_get_stream(a->ledger, a->entry), sites_get_stream(b->ledger, b->entry));
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
    uint32_t (*choose)(const struct gpulimit_ledger *ledger,
                       const struct gpulimit_site *site); /* the frame that counts; NULL: none */
} groups_keys[GROUPS_KEYS] = {
    [GROUPS_BY_SITE] = {"site", groups_compare_places, sites_choose},
    [GROUPS_BY_PYTHON] = {"python", groups_compare_places, sites_choose_python},
    [GROUPS_BY_API] = {"api", groups_compare_apis, NULL},
    [GROUPS_BY_KIND] = {"kind", groups_compare_kinds, NULL},
    [GROUPS_BY_TAG] = {"tag", groups_compare_tags, NULL},
    [GROUPS_BY_STREAM] = {"stream", groups_compare_streams, NULL},
    [GROUPS_BY_THREAD] = {"thread", groups_compare_threads, NULL},
    [GROUPS_BY_SIZE] = {"size", groups_compare_sizes, NULL},
};

bool groups_find_key(const char *name, enum groups_key *key)
{
    for (size_t i = GROUPS_BY_DEFAULT + 1; i < GROUPS_KEYS; i++) {
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
    for (size_t i = GROUPS_BY_DEFAULT + 1; i < GROUPS_KEYS; i++) {
        strncat(list, i > GROUPS_BY_DEFAULT + 1 ? ", " : "", sizeof(list) - strlen(list) - 1);
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

/* Within a group by site. */
static int groups_sort_by_key(const void *first, const void *second, void *key)
{
    const struct groups_item *a = first;
    const struct groups_item *b = second;
    int order = groups_compare_items(a, b, *(const enum groups_key *)key);

    return order != 0 ? order : groups_compare_numbers((uintptr_t)a->site, (uintptr_t)b->site);
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

/* The frame that the key goes by. `known` remembers it for each site of the ledger, one more than
 * itself, since many allocations come from one. */
static uint32_t groups_choose_frame(const struct groups_item *item, enum groups_key key,
                                    uint8_t *known)
{
    uint8_t *frame = item->site ? &known[item->entry->site - 1] : NULL;

    if (!groups_keys[key].choose || !item->site) {
        return SITES_NO_FRAME;
    }
    if (*frame == 0) {
        uint32_t chosen = groups_keys[key].choose(item->ledger, item->site);

        *frame = chosen == SITES_NO_FRAME ? UINT8_MAX : (uint8_t)(chosen + 1);
    }
    return *frame == UINT8_MAX ? SITES_NO_FRAME : *frame - 1u;
}

static bool groups_passes(const struct view *view, const struct view_row *row,
                          const struct gpulimit_ledger_entry *entry,
                          const struct groups_filter *filter)
{
    return &row->ledger->devices[entry->device] == row->device &&
           entry->requested_bytes >= filter->min_bytes &&
           (filter->min_seconds == 0 ||
            view_get_entry_age(view, row->ledger, entry) >= filter->min_seconds);
}

static void groups_add_items(const struct view *view, const struct view_row *row,
                             const struct groups_filter *filter, struct groups *groups)
{
    const struct gpulimit_ledger *ledger = row->ledger;
    uint8_t *known = memory_check(calloc((size_t)ledger->site_count + 1, 1));

    for (uint32_t i = 0; row->device && i < ledger->entry_count; i++) {
        const struct gpulimit_ledger_entry *entry = &ledger->entries[i];
        struct groups_item *item;

        if (!groups_passes(view, row, entry, filter)) {
            continue;
        }
        groups->items = memory_grow(groups->items, groups->item_count, sizeof(*groups->items));
        item = &groups->items[groups->item_count++];
        *item = (struct groups_item){
            .ledger = ledger,
            .device = row->device,
            .entry = entry,
            .site = gpulimit_reader_site(ledger, entry->site),
            .bytes = ledger->count_mode == GPULIMIT_COUNT_PROCESS ? entry->committed_bytes
                                                                  : entry->requested_bytes,
        };
        item->frame = groups_choose_frame(item, groups->key, known);
    }
    free(known);
}

static enum groups_key groups_choose_key(const struct view *view,
                                         const struct groups_filter *filter)
{
    if (filter->key != GROUPS_BY_DEFAULT) {
        return filter->key;
    }
    for (size_t i = 0; i < view->ledger_count; i++) {
        if (view->ledgers[i]->site_count > 0) {
            return GROUPS_BY_SITE;
        }
    }
    return GROUPS_BY_API;
}

/* Whether the groups are to add up to what is charged. */
static bool groups_are_whole(const struct groups *groups, const struct groups_filter *filter)
{
    return (groups->key == GROUPS_BY_SITE || groups->key == GROUPS_BY_PYTHON ||
            groups->key == GROUPS_BY_API) &&
           filter->min_bytes == 0 && filter->min_seconds == 0;
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
    *groups = (struct groups){.key = groups_choose_key(view, filter)};
    for (size_t i = 0; i < view->row_count; i++) {
        groups_add_items(view, &view->rows[i], filter, groups);
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
                &groups->key);
    }
    groups_add_up(view, groups);
    for (size_t i = 0; groups_are_whole(groups, filter) && i < view->row_count; i++) {
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
