/* SPDX-License-Identifier: MIT
 *
 * A table being filled, cell by cell: what emit_table.c asks of libsmartcols, and no more. Only
 * emit_table files include this.
 */
#ifndef GPULIMIT_TOOLS_EMIT_GRID_H
#define GPULIMIT_TOOLS_EMIT_GRID_H

#include <libsmartcols.h>

#include "emit_table.h"

#define GRID_YELLOW   "\033[33m"
#define GRID_RED      "\033[31m"
#define GRID_BOLD_RED "\033[1;31m"
#define GRID_DIM      "\033[2m"

struct grid_column {
    const char *name;
    bool is_number;   /* to the right */
    bool is_cut;      /* on a terminal, at its edge: one column, the last */
    int steady_width; /* when tables follow each other */
    int spare;        /* on a terminal only where there is room: 1 first; 0: always */
};

enum { GRID_COLUMNS_MAX = 16 };

struct grid {
    struct libscols_table *table;
    const struct emit_style *style;
    const struct grid_column *columns; /* the caller's, until grid_close */
    size_t column_count;
    size_t widths[GRID_COLUMNS_MAX]; /* of the widest cell so far */
    struct libscols_line *line;
    size_t cell;
};

void grid_open(const struct grid_column *columns, size_t count, const struct emit_style *style,
               struct grid *grid);

/* Begins a line. `color` is one of the above, or NULL. */
void grid_add_line(struct grid *grid, const char *color);

/* Fill the cells of the line from the left. Texts are copied; grid_add_foreign makes them safe
 * first. */
void grid_add_text(struct grid *grid, const char *text, const char *color);
void grid_add_foreign(struct grid *grid, const char *text);
void grid_add_number(struct grid *grid, uint64_t number, const char *color);
void grid_add_bytes(struct grid *grid, uint64_t bytes);
void grid_add_difference(struct grid *grid, int64_t bytes);               /* below 0: "-2M" */
void grid_add_change(struct grid *grid, uint64_t before, uint64_t after); /* "+2M", "-2M", "0" */
void grid_add_age(struct grid *grid, uint64_t seconds);
void grid_add_address(struct grid *grid, uint64_t address);

/* Prints, frees, and returns the number of lines printed. */
size_t grid_close(struct grid *grid);

#endif
