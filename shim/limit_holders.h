/* SPDX-License-Identifier: MIT
 *
 * Who holds what counts against a device's limit: the largest few by name, the others as one sum,
 * so that all of it adds up to what is in use. For messages.
 */
#ifndef SHIM_LIMIT_HOLDERS_H
#define SHIM_LIMIT_HOLDERS_H

#include <stdint.h>

enum { LIMIT_HOLDERS_LARGEST = 3, LIMIT_HOLDERS_NAMED };

struct limit_holder {
    const char *text;
    uint64_t bytes;
    uint64_t count; /* live allocations; 0: of something else */
};

/* A zero-initialised one has no holder. */
struct limit_holders {
    struct limit_holder named[LIMIT_HOLDERS_NAMED]; /* the largest first */
    unsigned named_count;
    uint64_t others, others_bytes; /* holders without a name here */
    uint64_t used_bytes;           /* of all of them */
    uint64_t overhead_bytes;       /* of that */
};

/* Adds a holder. One of 0 bytes is none. The text must stay. */
void limit_holders_add(struct limit_holders *holders, const char *text, uint64_t bytes,
                       uint64_t count);

/* Adds what the driver takes for itself, at last: named beside the largest, however small. */
void limit_holders_add_overhead(struct limit_holders *holders, uint64_t bytes);

/* The holders of a device at this moment, by kind of memory, and by call site, where sites are
 * recorded: what no live allocation holds is then named after its kind. */
void limit_holders_by_kind(unsigned device, struct limit_holders *holders);
void limit_holders_by_site(unsigned device, struct limit_holders *holders);

#endif
