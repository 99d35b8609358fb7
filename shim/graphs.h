/* SPDX-License-Identifier: MIT
 *
 * Which executable graphs need memory, and which of them has it for sure. Graph memory is a reserve
 * of each device, apart from pools: it grows when a graph is uploaded or launched, and moves from
 * graph to graph as they run, unless allocations in it outlive the launch. So only the graph that
 * was given its memory last has it for sure, and it too only until the reserve is trimmed.
 *
 * No locking: the caller has a lock. A zero-initialised struct graphs is empty and valid.
 */
#ifndef SHIM_GRAPHS_H
#define SHIM_GRAPHS_H

#include "budget.h"
#include "table.h"

#define GRAPHS_OUTLIVING 16u

/* What a graph needs of its device at most, with nothing of it there. */
struct graphs_need {
    uint64_t bytes;
    unsigned device;
    /* Some of the allocations that its launch leaves behind: while one of these lives, its memory
     * is there. */
    unsigned outliving_count;
    struct graphs_range {
        uint64_t start, bytes;
    } outliving[GRAPHS_OUTLIVING];
};

struct graphs_exec {
    struct graphs_need need;
    uint64_t turn;      /* of its device, when it was last given its memory; 0 never */
    uint32_t next_free; /* number + 1 */
};

struct graphs {
    struct table by_handle; /* CUgraphExec -> number */
    struct graphs_exec *execs;
    uint32_t capacity, used, free_list;
    uint64_t turns[BUDGET_DEVICES];
};

/* An executable graph that needs memory, new or changed. Returns false when there is no memory to
 * remember it by. */
bool graphs_insert(struct graphs *graphs, uint64_t handle, const struct graphs_need *need);

/* What the executable graph of a handle needs and may not have; NULL if that is nothing. Valid
 * until the next graphs_insert. */
const struct graphs_need *graphs_find_needy(struct graphs *graphs, uint64_t handle);

/* The driver has given a graph its memory. */
void graphs_back(struct graphs *graphs, uint64_t handle);

void graphs_remove(struct graphs *graphs, uint64_t handle);

/* A device's graph memory was trimmed: nobody knows whose it was. */
void graphs_trim(struct graphs *graphs, unsigned device);

/* Gives the memory back and leaves an empty structure. */
void graphs_clear(struct graphs *graphs);

#endif
