/* SPDX-License-Identifier: MIT
 *
 * Where in a pool an allocation lies. A pool has a stretch of addresses in chunks of 32 MiB, each
 * backed by device memory or not, and keeps allocations in backed ones, first fit. For a request
 * that fits nowhere it goes on past the last backed chunk: backing for that moves over from idle
 * chunks, and only the rest comes from the device. Keeps the pool's reserved figure. Called under
 * the driver's lock.
 */
#ifndef SIMGPU_POOL_CHUNKS_H
#define SIMGPU_POOL_CHUNKS_H

#include "pool.h"

/* 0: the device is full, or the pool's maximum reached. */
uint64_t chunks_take(CUmemoryPool pool, uint64_t bytes);

/* stream: on which it was freed; NULL: on none. */
void chunks_give(CUmemoryPool pool, uint64_t start, uint64_t bytes, CUstream stream);

/* Gives idle chunks back to the device until no more than bytes_to_keep are reserved: those whose
 * last free was on the stream, or all if it is NULL. */
void chunks_trim(CUmemoryPool pool, uint64_t bytes_to_keep, CUstream stream);

void chunks_forget_stream(CUmemoryPool pool, CUstream stream);
void chunks_finish(CUmemoryPool pool); /* all of them are idle */

#endif
