/* SPDX-License-Identifier: MIT
 *
 * Prints the table of intercepted functions for people.
 */
#include "emit_grid.h"
#include "emit_table.h"
#include "hooks_list.h"

size_t emit_table_hooks(const struct emit_style *style)
{
    static const struct grid_column columns[] = {
        {"SYMBOL", false, false, 0, 0},
        {"ROOM", false, false, 0, 0},
        {"ROLE", false, false, 0, 0},
        {"TEXT", false, true, 0, 0},
    };
    struct grid grid;

    grid_open(columns, sizeof(columns) / sizeof(columns[0]), style, &grid);
    for (size_t i = 0; i < HOOKS_LIST_COUNT; i++) {
        grid_add_line(&grid, NULL);
        grid_add_text(&grid, hooks_list[i].symbol, NULL);
        grid_add_text(&grid, hooks_list[i].room, NULL);
        grid_add_text(&grid, hooks_list[i].role, NULL);
        grid_add_text(&grid, hooks_list[i].text, NULL);
    }
    return grid_close(&grid);
}
