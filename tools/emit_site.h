/* SPDX-License-Identifier: MIT
 *
 * Call sites in words: one frame on one line, and whole stacks below a group.
 */
#ifndef GPULIMIT_TOOLS_EMIT_SITE_H
#define GPULIMIT_TOOLS_EMIT_SITE_H

#include "emit_table.h"
#include "symbols.h"

/* "model.py:31 forward", "cache.c:88 cache_fill", "libtorch_cuda.so+0x1234"; with `is_whole` the
 * paths too. Holds foreign text as it is. For the caller to free(). */
char *emit_site_label(const struct sites_frame *frame, struct symbols *symbols, bool is_whole);

/* Prints the stacks that the group's allocations came by, those with most bytes first; returns the
 * number of lines. */
size_t emit_site_stacks(const struct group *group, const struct emit_style *style);

#endif
