/* SPDX-License-Identifier: MIT
 *
 * Memory of graphs. Each graph has addresses of its own, fixed when a node is added; each device
 * has a reserve of chunks of 32 MiB that stand behind the addresses of whichever graph was uploaded
 * or launched last. A chunk with a live allocation stays where it is; any other may move to the
 * next graph, and goes back to the device when the program trims. Called under the driver's lock.
 */
#ifndef SIMGPU_GRAPH_MEMORY_H
#define SIMGPU_GRAPH_MEMORY_H

#include "memory.h"

#define GRAPH_CHUNK   (32 * DRIVER_MIB)
#define GRAPH_SPACING 512u

struct graph_chunk;

/* The addresses of one graph on one device. Lives while a graph, an executable, a free node or a
 * live allocation refers to it. */
struct graph_space {
    unsigned references;
    CUdevice ordinal;
    unsigned gpu;
    uint64_t start;
    struct graph_chunk *chunk;
    uint64_t chunks;
    TAILQ_HEAD(, graph_allocation) allocations;
    LIST_ENTRY(graph_space) of_process;
};

/* What an alloc node stands for. */
struct graph_allocation {
    struct graph_space *space;
    uint64_t start, bytes;
    CUgraphNode free_node; /* of the same graph; NULL: it outlives a launch */
    struct memory *live;   /* NULL: not launched, or freed since */
    bool is_padding;       /* no node's */
    TAILQ_ENTRY(graph_allocation) of_space;
};

/* A memory node as an executable graph runs it. */
struct graph_step {
    struct graph_allocation *allocation;
    bool is_free;
    bool outlives; /* an allocation that no later step frees */
};

struct graph_space *graph_space_create(CUdevice ordinal, unsigned gpu);
void graph_space_hold(struct graph_space *space);
void graph_space_drop(struct graph_space *space);

/* At a place in the graph's addresses that the caller found free.
 *   NULL: no addresses, or no memory. */
struct graph_allocation *graph_space_add(struct graph_space *space, uint64_t start, uint64_t bytes);

/* The allocation that begins there and that no node of its own graph frees; of any graph. */
struct graph_allocation *graph_find_allocation(uint64_t start);

/* Backs what the steps allocate.
 *   2: the device is full. As in the driver, all that was left of it is then gone for good. */
CUresult graph_memory_back(const struct graph_step *steps, unsigned count);

/* It is live from here on. false: no memory. */
bool graph_memory_begin(struct graph_allocation *allocation);
void graph_memory_end(struct graph_allocation *allocation);
void graph_memory_free(const struct memory *memory); /* the same, of a live one found by address */

void graph_memory_trim(unsigned gpu);

/* known: whether there is such an attribute. */
uint64_t graph_memory_figure(unsigned gpu, CUgraphMem_attribute attribute, bool *known);
bool graph_memory_reset_high(unsigned gpu, CUgraphMem_attribute attribute);

#endif
