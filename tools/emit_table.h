/* SPDX-License-Identifier: MIT
 *
 * Prints views as tables for people, with libsmartcols. Decides widths and colours, not contents.
 */
#ifndef GPULIMIT_TOOLS_EMIT_TABLE_H
#define GPULIMIT_TOOLS_EMIT_TABLE_H

#include <stdio.h>

#include "groups.h"
#include "growth.h"
#include "view.h"

struct emit_style {
    FILE *out;
    bool is_terminal; /* long commands are cut at its edge */
    size_t width;     /* of the terminal, when the program began: which columns have room in it does
                         not change while their headings stand above */
    bool is_utf8;     /* the reader's terminal shows more than ASCII */
    bool has_colors;
    bool has_headings;
    bool has_states;         /* a STATE column: ended processes are among them */
    bool is_exact;           /* sizes in bytes */
    bool is_stream;          /* columns keep their width from one table to the next */
    bool has_stacks;         /* below each group of allocations */
    struct symbols *symbols; /* for native frames; NULL: they stay addresses */
};

/* Each prints one table; nothing at all for one without rows, unless the headings alone are wanted:
 * then `has_headings` and `is_terminal`. Returns the number of lines printed. */
size_t emit_table_processes(const struct view *view, const struct emit_style *style);
size_t emit_table_groups(const struct groups *groups, const struct emit_style *style);
size_t emit_table_allocations(const struct view *view, const struct groups *groups,
                              const struct emit_style *style);
size_t emit_table_growth(const struct growth *growth, enum groups_key key,
                         const struct emit_style *style);
size_t emit_table_hooks(const struct emit_style *style);

#endif
