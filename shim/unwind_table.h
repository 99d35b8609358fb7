/* SPDX-License-Identifier: MIT
 *
 * The sorted table of an object's functions, .eh_frame_hdr, and the records of .eh_frame that it
 * leads to: a function's own (FDE), and what it has in common with others (CIE).
 *
 * No state. Any thread. No memory is allocated.
 */
#ifndef SHIM_UNWIND_TABLE_H
#define SHIM_UNWIND_TABLE_H

#include "unwind_bytes.h"

struct unwind_function {
    uint64_t begin;
    uint32_t row;                       /* of the table */
    struct unwind_bytes record, common; /* FDE and CIE, behind the first two members of each */
};

/* Finds the last function that begins at an address or before: it may have ended before, too.
 * Returns false if there is none, or the table is of a form that is not understood. */
bool unwind_table_find(const void *table, uint64_t address, struct unwind_function *function);

/* A digest of all that a row leads to. A table may come to lie where another did: what was read of
 * this row then still holds if the digest is the same. 0 if there is no such row. */
uint64_t unwind_table_digest(const void *table, uint32_t row);

#endif
