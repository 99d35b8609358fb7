/* SPDX-License-Identifier: MIT
 *
 * What limit.c lends to its own parts, limit_pools.c, limit_vmm.c and limit_contexts.c. All of it
 * is called with the books locked.
 */
#ifndef SHIM_LIMIT_BOOKS_H
#define SHIM_LIMIT_BOOKS_H

#include "books.h"
#include "limit.h"

/* The driver turned out to hold so much more (less) on a device for a kind of memory: in counters
 * and budget. */
void limit_note_change(struct books *books, unsigned device, enum gpulimit_kind kind,
                       int64_t bytes);

/* Removes an entry, with what it stood for in blocks, pools and budget, and shows it. */
void limit_remove_entry(struct books *books, uint32_t number);

#endif
