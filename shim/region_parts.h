/* SPDX-License-Identifier: MIT
 *
 * What region.c, region_records.c and region_history.c, one module, share.
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
void region_forget_history(void);

/* Begins and ends a change of a record, as region.h says of sequence numbers: with each field
 * stored with release order, no reader can see a new field beside the old even number. */
static inline uint32_t region_begin(_Atomic uint32_t *sequence)
{
    uint32_t number = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, number + 1, memory_order_relaxed);
    return number + 2;
}

#define REGION_STORE(_place, _value)                                                               \
    atomic_store_explicit(&(_place), (_value), memory_order_release)

#endif
