/* SPDX-License-Identifier: MIT
 *
 * What dies with a context: its linear and managed memory, but neither pools nor cuMemCreate's
 * memory, as measured (driver 580.159). See limit.h for threads and forks.
 *
 * A device's primary context is not always handed out by a call that we see, so it is told apart by
 * exclusion: it is the one that the program has not created itself.
 */
#ifndef SHIM_LIMIT_CONTEXTS_H
#define SHIM_LIMIT_CONTEXTS_H

#include "limit.h"

/* The driver has created a context, or counted one user more of it. */
void limit_context_created(uint64_t context);
void limit_context_attached(uint64_t context);

/* The driver is about to destroy a context. Ends with limit_context_gone and limit_release, or
 * limit_restore. */
void limit_context_detach(struct removal *removal, uint64_t context);

/* The driver has destroyed it. */
void limit_context_gone(uint64_t context);

/* The driver has counted one user less. Returns true if that was the last. */
bool limit_context_left(uint64_t context);

/* Whether one user less would be the end of a context. */
bool limit_context_is_last(uint64_t context);

/* A mark in time: what is allocated later has a higher one. */
uint64_t limit_context_mark(void);

/* The primary context of a device is about to be destroyed, or has been: takes what it owns and was
 * allocated up to a mark. Ends with limit_release or limit_restore. */
void limit_primary_detach(struct removal *removal, unsigned device, uint64_t mark);

#endif
