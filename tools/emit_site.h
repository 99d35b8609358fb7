/* SPDX-License-Identifier: MIT
 *
 * Call sites in words: one frame on one line, and whole stacks below a group.
 */
#ifndef GPULIMIT_TOOLS_EMIT_SITE_H
#define GPULIMIT_TOOLS_EMIT_SITE_H

#include "emit_grid.h"
#include "emit_table.h"
#include "symbols.h"

/* "model.py:31 forward", "cache.c:88 cache_fill", "libtorch_cuda.so+0x1234"; with `is_whole` the
 * paths too. Holds foreign text as it is. For the caller to free(). */
char *emit_site_label(const struct sites_frame *frame, struct symbols *symbols, bool is_whole);

/* Fills a cell with the frame that the item is grouped by, which is by site or by Python line, or
 * with what else is known of where it was asked for: "(unknown, cuMemAlloc_v2)". */
void emit_site_cell(struct grid *grid, const struct groups_item *item, enum groups_key key);

/* The function that was called; "-" if it has no name. */
const char *emit_site_api(const struct groups_item *item);

/* Prints the stacks that the group's allocations came by, those with most bytes first; returns the
 * number of lines. */
size_t emit_site_stacks(const struct group *group, const struct emit_style *style);

/* Prints a table that has been made whole, for the sake of its widths, and below each line of it
 * the stacks of the line's group; returns the number of lines of these. */
size_t emit_site_weave(const char *table, const struct group *const *groups, size_t count,
                       const struct emit_style *style);

#endif
