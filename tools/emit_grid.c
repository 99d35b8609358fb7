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

enum {
    GRID_SHORT_WIDTH = 15, /* "python train.py": no spare column is worth cutting it */
    GRID_SPARE_MAX = 3,
};

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
    *grid = (struct grid){.table = memory_check(scols_new_table()),
                          .style = style,
                          .columns = columns,
                          .column_count = count};
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
    size_t *width = &grid->widths[grid->cell];
    struct libscols_cell *cell = memory_check(scols_line_get_cell(grid->line, grid->cell++));

    *width = strlen(text) > *width ? strlen(text) : *width;
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

void grid_add_difference(struct grid *grid, int64_t bytes)
{
    char cell[1 + TEXT_CELL_BYTES] = "-";
    bool is_negative = bytes < 0;

    text_print_bytes(is_negative ? -(uint64_t)bytes : (uint64_t)bytes, grid->style->is_exact,
                     cell + is_negative);
    grid_add_text(grid, cell, NULL);
}

void grid_add_change(struct grid *grid, uint64_t before, uint64_t after)
{
    char cell[1 + TEXT_CELL_BYTES] = "0";

    if (before != after) {
        cell[0] = after > before ? '+' : '-';
        text_print_bytes(after > before ? after - before : before - after, grid->style->is_exact,
                         cell + 1);
    }
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

/* In a stream without regard to the cells: the same columns in every table. */
static size_t grid_get_width(const struct grid *grid, size_t place)
{
    const struct grid_column *column = &grid->columns[place];
    size_t widest = grid->widths[place];

    if (grid->style->is_stream) {
        widest = (size_t)column->steady_width;
    } else if (column->is_cut && widest > GRID_SHORT_WIDTH) {
        widest = GRID_SHORT_WIDTH;
    }
    return widest > strlen(column->name) ? widest : strlen(column->name);
}

/* Hides the spare columns that the terminal has no room for. */
static void grid_choose_columns(struct grid *grid)
{
    size_t needed = 0;

    for (size_t i = 0; i < grid->column_count; i++) {
        needed += grid->columns[i].spare == 0 ? grid_get_width(grid, i) + 1 : 0;
    }
    for (int spare = 1; spare <= GRID_SPARE_MAX; spare++) {
        for (size_t i = 0; i < grid->column_count; i++) {
            size_t width = grid_get_width(grid, i) + 1;

            if (grid->columns[i].spare != spare) {
                continue;
            }
            if (needed + width <= grid->style->width + 1) { /* no gap after the last */
                needed += width;
            } else {
                grid_check(scols_column_set_flags(scols_table_get_column(grid->table, i),
                                                  SCOLS_FL_RIGHT | SCOLS_FL_HIDDEN));
            }
        }
    }
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

    if (grid->style->is_terminal) {
        grid_choose_columns(grid);
    }
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
