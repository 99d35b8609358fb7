/* SPDX-License-Identifier: MIT
 *
 * What dies with a context: its linear and managed memory, its arrays and what it has opened, but
 * neither pools nor cuMemCreate's memory, as measured (driver 580.159). See limit.h for threads and
 * forks.
 *
 * A device's primary context is not always handed out by a call that we see, so it is told apart by
 * exclusion: it is the one that the program has not created itself.
 */
#ifndef SHIM_LIMIT_CONTEXTS_H
#define SHIM_LIMIT_CONTEXTS_H

#include "limit.h"

/* The driver has created a context on a device, which took so much as far as is known, or has
 * counted one user more of it. */
void limit_context_created(uint64_t context, unsigned device, uint64_t took_bytes);
void limit_context_attached(uint64_t context);

/* Whether a device has a context that the program has created itself. */
bool limit_has_context(unsigned device);

/* The device of a context that the program has created itself; BUDGET_DEVICES for others. */
unsigned limit_context_device(uint64_t context);

/* A mark in time, taken before a call that may end a context: what is allocated later has a higher
 * one. Handles and addresses can be handed out again as soon as the driver has ended the context.
 */
uint64_t limit_context_mark(void);

/* The driver has counted one user less, or has destroyed a context. Returns what it took, of one
 * that is gone; 0 unknown. */
uint64_t limit_context_detached(uint64_t context, uint64_t mark);
uint64_t limit_context_destroyed(uint64_t context, uint64_t mark);

/* The driver has destroyed the primary context of a device. */
void limit_primary_destroyed(unsigned device, uint64_t mark);

#endif
