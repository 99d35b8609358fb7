/* SPDX-License-Identifier: MIT
 *
 * A stretch of addresses, handed out first fit: the lowest free place that is large enough. Knows
 * nothing of what the addresses mean. Address 0 is never handed out.
 */
#ifndef SIMGPU_ARENA_H
#define SIMGPU_ARENA_H

#include <stdbool.h>
#include <stdint.h>

struct arena_extent;

struct arena {
    struct arena_extent *free; /* by address, never touching one another */
};

/* Adds [start, start + size) to what may be handed out: at the beginning, and of what was taken
 * before. */
bool arena_give(struct arena *arena, uint64_t start, uint64_t size);

/* alignment is a power of two.
 *   0: no place. */
uint64_t arena_take(struct arena *arena, uint64_t size, uint64_t alignment);

/* Takes exactly this place.
 *   false: it is not all free. */
bool arena_take_at(struct arena *arena, uint64_t start, uint64_t size);

/* Where the free extent that ends at `end` begins; `end` if there is none. */
uint64_t arena_tail(const struct arena *arena, uint64_t end);

void arena_finish(struct arena *arena);

#endif
