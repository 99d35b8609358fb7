/* SPDX-License-Identifier: MIT
 *
 * Which loaded object an address lies in, as the C library says without a lock (_dl_find_object of
 * glibc 2.35). dl_iterate_phdr has a lock that a fork leaves to the child as it is: held, if
 * another thread was in it, and then the child hangs at its next dlopen.
 *
 * Any thread, after fork, also in signal handlers. No memory is allocated.
 */
#ifndef SHIM_FINDER_H
#define SHIM_FINDER_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct finder_object {
    const void *start; /* of what was mapped */
    const void *table; /* .eh_frame_hdr; NULL if it has none */
    const struct link_map *map;
};

/* Whether the C library can. */
bool finder_is_there(void);

/* Returns false if the address lies in none. */
bool finder_find(uint64_t address, struct finder_object *object);

#endif
