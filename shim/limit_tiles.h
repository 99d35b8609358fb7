/* SPDX-License-Identifier: MIT
 *
 * Memory of cuMemCreate that is mapped into arrays: the part of the gate that keeps it charged
 * until no array has it. See limit.h for threads and forks.
 *
 * An unmapping is done when its stream gets there: what it takes out stays charged until that
 * stream or its context is synchronised, or the array is destroyed. Only what one unmapping covers
 * as a whole is taken out by it, and a mapping put over another takes nothing out: what is doubtful
 * stays charged until the array goes.
 */
#ifndef SHIM_LIMIT_TILES_H
#define SHIM_LIMIT_TILES_H

#include "limit.h"

/* The driver has made an array without memory of its own, in a context of a device. is_whole:
 * memory is mapped into all of it at once. */
void limit_array_created(uint64_t array, unsigned device, uint64_t context, bool is_whole);

/* The driver has destroyed an array of any kind; mark is what limit_context_mark said before. */
void limit_array_destroyed(uint64_t array, uint64_t mark);

/* The driver has mapped memory into a region of an array, or unmapped it, on a stream. */
void limit_array_mapped(uint64_t array, const struct tiles_region *region,
                        const struct queue *queue, uint64_t handle);
void limit_array_unmapped(uint64_t array, const struct tiles_region *region,
                          const struct queue *queue);

/* Whether anything is on its way into or out of arrays. It is asked at each synchronisation, so it
 * is one load. */
bool limit_tiles_move(void);

/* What was mapped or unmapped there before the mark (limit_sync_mark) is in, or out. */
void limit_tiles_synchronized(const struct queue *queue, uint64_t mark);

/* The driver is about to destroy a stream. Its work goes on, but its handle can come back. */
void limit_tiles_stream_ends(uint64_t stream);

#endif
