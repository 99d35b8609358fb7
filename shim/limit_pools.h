/* SPDX-License-Identifier: MIT
 *
 * What becomes of stream-ordered pools: the part of the gate that is about pools as such. See
 * limit.h for threads and forks; pools are named by their CUmemoryPool handle.
 */
#ifndef SHIM_LIMIT_POOLS_H
#define SHIM_LIMIT_POOLS_H

#include "limit.h"

/* A pool of a device, or of the host (POOLS_HOST), exists. is_managed: its memory is managed. */
void limit_pool_created(uint64_t pool, int device, bool is_managed);

/* Returns false for a pool not heard of. */
bool limit_pool_device(uint64_t pool, int *device);

/* A thread allocates from pools, or synchronises, which makes them shrink. */
void limit_note_thread(void);

/* Whether more than one thread has done so. */
bool limit_is_threaded(void);

/* The number for a reading: taken before the driver is asked. */
uint64_t limit_pool_number(void);

/* Pins the next pool of a device, so that it is not destroyed while the driver is asked about it.
 * *cursor is 0 at first. Returns its handle, or 0 after the last. Each is unpinned by
 * limit_pool_answer. */
uint64_t limit_pool_pin_next(unsigned device, unsigned *cursor);

/* What the driver says of a pinned pool; NULL if it would not say. */
void limit_pool_answer(uint64_t pool, const struct pool_reading *reading);

/* Likewise for a pool that is not pinned: the caller knows it to be alive. */
void limit_pool_update(uint64_t pool, const struct pool_reading *reading);

/* The program is about to destroy a pool: waits until nobody asks about it, and lets nobody begin.
 */
void limit_pool_detach(uint64_t pool);

/* The driver has destroyed it: what it holds goes when its last allocation is freed and waited for.
 */
void limit_pool_release(uint64_t pool);

/* The driver has not. */
void limit_pool_restore(uint64_t pool);

/* A synchronisation of a queue, in a context of that device, that began at the mark
 * (limit_sync_mark): what destroyed pools had waiting there is gone, as measured (driver 580.159):
 * not at the free, nor when the stream gets there. */
void limit_pools_synchronized(const struct queue *queue, unsigned device, uint64_t mark);

/* The driver is about to destroy a stream. Its work goes on, but its handle can come back. */
void limit_pools_stream_ends(uint64_t stream);

#endif
