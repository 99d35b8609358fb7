/* SPDX-License-Identifier: MIT
 *
 * Which executable graphs need memory of their own, and which of them have it already. Graph memory
 * is a reserve of each device, apart from pools: it grows when a graph is uploaded or first
 * launched, is used again by graphs that do not run at the same time, and shrinks when it is
 * trimmed.
 *
 * No locking: the caller has a lock. A zero-initialised struct graphs is empty and valid.
 */
#ifndef SHIM_GRAPHS_H
#define SHIM_GRAPHS_H

#include "budget.h"
#include "table.h"

struct graphs_exec {
    uint64_t need_bytes;
    unsigned device;
    uint32_t trims;     /* of its device, when it was last given its memory */
    bool is_backed;     /* it was given it at that time */
    uint32_t next_free; /* number + 1 */
};

struct graphs {
    struct table by_handle; /* CUgraphExec -> number */
    struct graphs_exec *execs;
    uint32_t capacity, used, free_list;
    uint32_t trims[BUDGET_DEVICES];
};

/* An executable graph that needs memory. Returns false when there is no memory to remember it by.
 */
bool graphs_insert(struct graphs *graphs, uint64_t handle, unsigned device, uint64_t need_bytes);

/* The executable graph of a handle, if it needs memory that it may not have; NULL otherwise. Valid
 * until the next graphs_insert. */
struct graphs_exec *graphs_find_needy(struct graphs *graphs, uint64_t handle);

/* The driver has given a graph its memory. */
void graphs_back(struct graphs *graphs, uint64_t handle);

void graphs_remove(struct graphs *graphs, uint64_t handle);

/* A device's graph memory was trimmed: nobody knows whose it was. */
void graphs_trim(struct graphs *graphs, unsigned device);

/* Gives the memory back and leaves an empty structure. */
void graphs_clear(struct graphs *graphs);

#endif
