/* SPDX-License-Identifier: MIT
 *
 * A table being filled, cell by cell: what emit_table.c asks of libsmartcols, and no more.
 */
#include "emit_grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

/* libsmartcols fails only where memory does. */
static void grid_check(int result)
{
    memory_check(result < 0 ? NULL : &result);
}

static void grid_add_column(struct grid *grid, const struct grid_column *column)
{
    int flags = (column->is_number ? SCOLS_FL_RIGHT : 0) |
                (column->is_cut && grid->style->is_terminal ? SCOLS_FL_TRUNC : 0);
    double width = grid->style->is_stream ? column->steady_width : 0;

    memory_check(scols_table_new_column(grid->table, column->name, width, flags));
}

void grid_open(const struct grid_column *columns, size_t count, const struct emit_style *style,
               struct grid *grid)
{
    *grid = (struct grid){.table = memory_check(scols_new_table()), .style = style};
    grid_check(scols_table_set_stream(grid->table, style->out));
    grid_check(scols_table_enable_colors(grid->table, style->has_colors));
    grid_check(scols_table_enable_noheadings(grid->table, !style->has_headings));
    /* Texts are safe already; its own escapes would escape ours once more. */
    grid_check(scols_table_enable_noencoding(grid->table, 1));
    grid_check(scols_table_set_termforce(grid->table, style->is_terminal ? SCOLS_TERMFORCE_ALWAYS
                                                                         : SCOLS_TERMFORCE_NEVER));
    for (size_t i = 0; i < count; i++) {
        grid_add_column(grid, &columns[i]);
    }
}

void grid_add_line(struct grid *grid, const char *color)
{
    grid->line = memory_check(scols_table_new_line(grid->table, NULL));
    grid->cell = 0;
    if (color) {
        grid_check(scols_line_set_color(grid->line, color));
    }
}

void grid_add_text(struct grid *grid, const char *text, const char *color)
{
    struct libscols_cell *cell = memory_check(scols_line_get_cell(grid->line, grid->cell++));

    grid_check(scols_cell_set_data(cell, text));
    if (color) {
        grid_check(scols_cell_set_color(cell, color));
    }
}

void grid_add_foreign(struct grid *grid, const char *text)
{
    char *clean = text_clean(text, grid->style->is_utf8);

    grid_add_text(grid, clean, NULL);
    free(clean);
}

void grid_add_number(struct grid *grid, uint64_t number, const char *color)
{
    char cell[TEXT_CELL_BYTES];

    snprintf(cell, sizeof(cell), "%" PRIu64, number);
    grid_add_text(grid, cell, color);
}

void grid_add_bytes(struct grid *grid, uint64_t bytes)
{
    char cell[TEXT_CELL_BYTES];

    text_print_bytes(bytes, grid->style->is_exact, cell);
    grid_add_text(grid, cell, NULL);
}

void grid_add_age(struct grid *grid, uint64_t seconds)
{
    char cell[TEXT_CELL_BYTES];

    text_print_age(seconds, cell);
    grid_add_text(grid, cell, NULL);
}

void grid_add_address(struct grid *grid, uint64_t address)
{
    char cell[TEXT_CELL_BYTES];

    snprintf(cell, sizeof(cell), "0x%" PRIx64, address);
    grid_add_text(grid, cell, NULL);
}

/* A table without lines prints nothing, not even its headings, so it gets an empty one that is left
 * out. */
static void grid_print_headings(struct grid *grid)
{
    char *text;

    grid_add_line(grid, NULL);
    grid_check(scols_print_table_to_string(grid->table, &text));
    fprintf(grid->style->out, "%.*s\n", (int)strcspn(text, "\n"), text);
    free(text);
}

size_t grid_close(struct grid *grid)
{
    size_t lines = scols_table_get_nlines(grid->table);

    if (lines > 0) {
        grid_check(scols_print_table(grid->table));
        lines += grid->style->has_headings;
    } else if (grid->style->has_headings && grid->style->is_terminal) {
        grid_print_headings(grid);
        lines = 1;
    }
    scols_unref_table(grid->table);
    return lines;
}
