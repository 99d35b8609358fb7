/* SPDX-License-Identifier: MIT
 *
 * What region.c and region_records.c, one module, share.
 */
#ifndef SHIM_REGION_PARTS_H
#define SHIM_REGION_PARTS_H

#include "region.h"

/* Adds bytes, a whole number of pages, to the file and maps them; *offset is where in the file.
 * Returns NULL if they are not to be had. */
void *region_extend(uint64_t bytes, uint64_t *offset);

/* Makes an extent known to readers. Returns false if there is no room for one more. */
bool region_publish_extent(enum gpulimit_section section, uint32_t count, uint64_t offset);

/* In a fork's child, and when the file is opened: no records. */
void region_forget_records(void);

#endif
