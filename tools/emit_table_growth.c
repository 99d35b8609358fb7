/* SPDX-License-Identifier: MIT
 *
 * Prints what only grows, for people.
 */
#include <stdlib.h>

#include "emit_grid.h"
#include "emit_site.h"
#include "emit_table.h"
#include "memory.h"
#include "text.h"

static void emit_rate(struct grid *grid, uint64_t bytes_per_minute)
{
    char bytes[TEXT_CELL_BYTES];
    char *cell;

    text_print_bytes(bytes_per_minute, grid->style->is_exact, bytes);
    cell = memory_print("%s/min", bytes);
    grid_add_text(grid, cell, NULL);
    free(cell);
}

static size_t emit_rows(const struct growth *growth, enum groups_key key,
                        const struct emit_style *style)
{
    const struct grid_column columns[] = {
        {"GPU", true, false, 3, 0},
        {"PID", true, false, 6, 0},
        {"SCORE", true, false, 5, 0},
        {"GROWTH", true, false, 11, 0},
        {"BYTES", true, false, 8, 0},
        {"COUNT", true, false, 6, 0},
        {"OLDEST", true, false, 6, 0},
        {key == GROUPS_BY_PYTHON ? "PYTHON" : "SITE", false, true, 24, 0},
    };
    struct grid grid;

    grid_open(columns, sizeof(columns) / sizeof(columns[0]), style, &grid);
    for (size_t i = 0; i < growth->count; i++) {
        const struct growth_row *row = &growth->rows[i];
        const struct group *group = row->group;

        grid_add_line(&grid, NULL);
        grid_add_number(&grid, group->device->gpu_index, NULL);
        grid_add_number(&grid, (uint64_t)group->ledger->pid, NULL);
        grid_add_number(&grid, row->score, NULL);
        emit_rate(&grid, row->bytes_per_minute);
        grid_add_bytes(&grid, group->bytes);
        grid_add_number(&grid, group->count, NULL);
        grid_add_age(&grid, group->oldest_seconds);
        emit_site_cell(&grid, group->example, key);
    }
    return grid_close(&grid);
}

size_t emit_table_growth(const struct growth *growth, enum groups_key key,
                         const struct emit_style *style)
{
    const struct group **list;
    struct emit_style inner = *style;
    char *text = NULL;
    size_t bytes;
    size_t lines;

    if (!style->has_stacks) {
        return emit_rows(growth, key, style);
    }
    list = memory_check(calloc(growth->count + 1, sizeof(struct group *)));
    for (size_t i = 0; i < growth->count; i++) {
        list[i] = growth->rows[i].group;
    }
    inner.out = memory_check(open_memstream(&text, &bytes));
    lines = emit_rows(growth, key, &inner);
    memory_check(fclose(inner.out) == 0 ? text : NULL);
    lines += emit_site_weave(text, list, growth->count, style);
    free(text);
    free((void *)list);
    return lines;
}
