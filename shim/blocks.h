/* SPDX-License-Identifier: MIT
 *
 * What linear memory really takes: 2 MiB times the number of distinct 2 MiB-aligned blocks touched
 * by live cuMemAlloc allocations. Measured against an H200's own figure (driver 580.159, CUDA 13.0)
 * over random allocating and freeing of 1 byte to 16 MiB: never a KiB off. So the addresses that
 * the driver returns say exactly what it committed.
 *
 * Only the first and the last block of an allocation can be shared with others, and then only if
 * the allocation does not cover them: those are counted in a table, the rest is arithmetic.
 *
 * No locking: the caller has a lock. A zero-initialised struct blocks is empty and valid.
 */
#ifndef SHIM_BLOCKS_H
#define SHIM_BLOCKS_H

#include "table.h"

#define BLOCKS_BYTES (UINT64_C(2) << 20)

struct blocks {
    struct table users; /* block number + 1 -> live allocations that touch but do not cover it */
};

/* Counts an allocation in. *touched_bytes is what it adds: the blocks that nothing live touched
 * before. Returns false, with nothing changed, when there is no memory for the table. bytes > 0. */
bool blocks_add(struct blocks *blocks, uint64_t address, uint64_t bytes, uint64_t *touched_bytes);

/* Counts an allocation out that was counted in. Returns the bytes of the blocks it was the last to
 * touch. */
uint64_t blocks_remove(struct blocks *blocks, uint64_t address, uint64_t bytes);

/* The most that an allocation of this size can add, known before its address is. Saturates at
 * UINT64_MAX. */
uint64_t blocks_most(uint64_t bytes);

#endif
