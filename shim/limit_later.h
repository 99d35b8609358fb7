/* SPDX-License-Identifier: MIT
 *
 * What the driver gives back later than it says: the part of the gate that waits. See limit.h for
 * threads and forks.
 *
 * cuMemFreeAsync of linear memory returns at once, but the device holds the memory until the
 * stream, or its context, is synchronised (measured: not when the stream is idle, nor at another
 * stream's synchronisation; driver 580.159). Until then cuMemGetAddressRange knows the address, and
 * the budget keeps the charge. And a pool shrinks to its release threshold at such a
 * synchronisation.
 */
#ifndef SHIM_LIMIT_LATER_H
#define SHIM_LIMIT_LATER_H

#include "limit.h"

/* The driver has freed in order of a stream (queue.h): limit_release, now or when the device has
 * the memory back. */
void limit_release_later(const struct removal *removal, uint64_t stream);

/* Whether a synchronisation can have given something back that we do not know of. It is asked at
 * each, so it is one load; what makes it true comes before the synchronisation on the same thread,
 * or by the program's own means of ordering. */
bool limit_awaits(void);

/* Asked before a synchronisation: the mark for what has to know what went before it, or 0 if nobody
 * waits for any. */
uint64_t limit_sync_mark(void);

/* Somebody is about to look: from here on limit_awaits is about what comes later. */
void limit_begin_look(void);

/* The next address whose memory was freed in stream order and is not back, as far as we know; 0
 * after the last. *cursor is UINT32_MAX at first. */
uint64_t limit_later_next(uint32_t *cursor);

/* The driver does not know an address any more, or has handed it out again. */
void limit_later_is_back(uint64_t address);

#endif
