// SPDX-License-Identifier: MIT
//
// Spaces, and the reserve behind them; see graph_memory.h.

#include "graph_memory.h"

#include "address.h"
#include "backing.h"
#include "config.h"

#include <stdlib.h>
#include <string.h>

#define SPACE_ADDRESSES ((uint64_t)1 << 40) /* of a graph; more than any device has memory */

struct graph_chunk {
    bool is_backed;
    bool is_wanted; /* by the graph that is being backed */
    unsigned live;  /* allocations that touch it; only backed chunks have any */
};

/* In chunks. */
static struct {
    uint64_t reserved, reserved_high;
    uint64_t used, used_high; /* that stand behind some graph's addresses */
    uint64_t orphaned;        /* of the used ones, those whose graph is gone */
} reserves[CONFIG_DEVICES_MAX];

static LIST_HEAD(, graph_space) spaces = LIST_HEAD_INITIALIZER(spaces);

static void reserve_count(unsigned gpu, int64_t reserved, int64_t used)
{
    reserves[gpu].reserved += (uint64_t)reserved;
    reserves[gpu].used += (uint64_t)used;
    if (reserves[gpu].reserved_high < reserves[gpu].reserved)
        reserves[gpu].reserved_high = reserves[gpu].reserved;
    if (reserves[gpu].used_high < reserves[gpu].used)
        reserves[gpu].used_high = reserves[gpu].used;
}

/* ---- spaces ---- */

struct graph_space *graph_space_create(CUdevice ordinal, unsigned gpu)
{
    struct graph_space *space = calloc(1, sizeof *space);

    if (!space)
        return NULL;
    space->start = address_take(SPACE_ADDRESSES, GRAPH_CHUNK);
    if (!space->start) {
        free(space);
        return NULL;
    }
    space->references = 1;
    space->ordinal = ordinal;
    space->gpu = gpu;
    TAILQ_INIT(&space->allocations);
    LIST_INSERT_HEAD(&spaces, space, of_process);
    return space;
}

void graph_space_hold(struct graph_space *space)
{
    space->references++;
}

void graph_space_drop(struct graph_space *space)
{
    struct graph_allocation *allocation;

    if (--space->references)
        return;
    /* A driver quirk: what stood behind it counts as used until another graph needs it. */
    for (uint64_t i = 0; i < space->chunks; i++)
        reserves[space->gpu].orphaned += space->chunk[i].is_backed;
    while ((allocation = TAILQ_FIRST(&space->allocations)) != NULL) {
        TAILQ_REMOVE(&space->allocations, allocation, of_space);
        free(allocation);
    }
    LIST_REMOVE(space, of_process);
    address_give(space->start, SPACE_ADDRESSES);
    free(space->chunk);
    free(space);
}

static bool space_make_room(struct graph_space *space, uint64_t chunks)
{
    if (chunks <= space->chunks)
        return true;
    struct graph_chunk *grown = realloc(space->chunk, chunks * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + space->chunks, 0, (chunks - space->chunks) * sizeof *grown);
    space->chunk = grown;
    space->chunks = chunks;
    return true;
}

struct graph_allocation *graph_space_add(struct graph_space *space, uint64_t start, uint64_t bytes)
{
    uint64_t offset = start - space->start;

    if (bytes > SPACE_ADDRESSES || offset > SPACE_ADDRESSES - bytes ||
        !space_make_room(space, (offset + bytes - 1) / GRAPH_CHUNK + 1))
        return NULL;
    struct graph_allocation *allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return NULL;
    allocation->space = space;
    allocation->start = start;
    allocation->bytes = bytes;
    TAILQ_INSERT_TAIL(&space->allocations, allocation, of_space);
    return allocation;
}

struct graph_allocation *graph_find_allocation(uint64_t start)
{
    struct graph_allocation *allocation;
    struct graph_space *space;

    LIST_FOREACH(space, &spaces, of_process)
    TAILQ_FOREACH(allocation, &space->allocations, of_space)
    if (allocation->start == start && !allocation->free_node && !allocation->is_padding)
        return allocation;
    return NULL;
}

/* ---- backing ---- */

static uint64_t chunk_first(const struct graph_allocation *allocation)
{
    return (allocation->start - allocation->space->start) / GRAPH_CHUNK;
}

static uint64_t chunk_last(const struct graph_allocation *allocation)
{
    return (allocation->start - allocation->space->start + allocation->bytes - 1) / GRAPH_CHUNK;
}

static void back_want(const struct graph_step *steps, unsigned count, bool wanted)
{
    for (unsigned i = 0; i < count; i++)
        for (uint64_t at = chunk_first(steps[i].allocation);
             !steps[i].is_free && at <= chunk_last(steps[i].allocation); at++)
            steps[i].allocation->space->chunk[at].is_wanted = wanted;
}

/* Takes a chunk from behind some graph that does not need it now. */
static bool back_steal(unsigned gpu)
{
    struct graph_space *space;

    if (reserves[gpu].orphaned) {
        reserves[gpu].orphaned--;
        reserve_count(gpu, 0, -1);
        return true;
    }
    LIST_FOREACH(space, &spaces, of_process)
    for (uint64_t i = 0; space->gpu == gpu && i < space->chunks; i++) {
        struct graph_chunk *chunk = &space->chunk[i];

        if (chunk->is_backed && !chunk->live && !chunk->is_wanted) {
            chunk->is_backed = false;
            reserve_count(gpu, 0, -1);
            return true;
        }
    }
    return false;
}

/* A driver quirk: what it had collected for the graph that did not fit, it neither uses nor gives
 * back, not even to a trim. */
static CUresult back_leak(unsigned gpu)
{
    backing_take_once(gpu, backing_free_bytes(gpu));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Until so many chunks are idle. */
static bool back_grow(unsigned gpu, uint64_t chunks)
{
    uint64_t more = chunks - (reserves[gpu].reserved - reserves[gpu].used);

    if (!backing_take_once(gpu, more * GRAPH_CHUNK))
        return false;
    reserve_count(gpu, (int64_t)more, 0);
    return true;
}

static CUresult back_allocation(const struct graph_allocation *allocation)
{
    struct graph_chunk *chunk = allocation->space->chunk;
    uint64_t first = chunk_first(allocation), last = chunk_last(allocation), missing = 0;
    unsigned gpu = allocation->space->gpu;

    for (uint64_t at = first; at <= last; at++)
        missing += !chunk[at].is_backed;
    while (reserves[gpu].reserved - reserves[gpu].used < missing && back_steal(gpu))
        ;
    if (reserves[gpu].reserved - reserves[gpu].used < missing) {
        /* The driver wants as much as the node is large, even where it shares a chunk. */
        uint64_t wanted = (allocation->bytes + GRAPH_CHUNK - 1) / GRAPH_CHUNK;

        if (!back_grow(gpu, wanted)) {
            backing_reclaim(gpu);
            if (!back_grow(gpu, wanted))
                return back_leak(gpu);
        }
    }
    for (uint64_t at = first; at <= last; at++)
        chunk[at].is_backed = true;
    reserve_count(gpu, 0, (int64_t)missing);
    return CUDA_SUCCESS;
}

CUresult graph_memory_back(const struct graph_step *steps, unsigned count)
{
    CUresult result = CUDA_SUCCESS;

    back_want(steps, count, true);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!steps[i].is_free)
            result = back_allocation(steps[i].allocation);
    back_want(steps, count, false);
    return result;
}

void graph_memory_trim(unsigned gpu)
{
    while (back_steal(gpu))
        ;
    uint64_t idle = reserves[gpu].reserved - reserves[gpu].used;
    backing_give(gpu, idle * GRAPH_CHUNK);
    reserve_count(gpu, -(int64_t)idle, 0);
}

/* ---- live allocations ---- */

static void live_count(const struct graph_allocation *allocation, int change)
{
    for (uint64_t at = chunk_first(allocation); at <= chunk_last(allocation); at++)
        allocation->space->chunk[at].live += (unsigned)change;
}

bool graph_memory_begin(struct graph_allocation *allocation)
{
    struct memory *memory = memory_insert(MEMORY_GRAPH, allocation->start, allocation->bytes);

    if (!memory)
        return false;
    memory->ordinal = allocation->space->ordinal;
    memory->allocation = allocation;
    allocation->live = memory;
    live_count(allocation, 1);
    graph_space_hold(allocation->space);
    return true;
}

void graph_memory_end(struct graph_allocation *allocation)
{
    memory_remove(allocation->live);
    allocation->live = NULL;
    live_count(allocation, -1);
    graph_space_drop(allocation->space);
}

void graph_memory_free(const struct memory *memory)
{
    graph_memory_end(memory->allocation);
}

/* ---- figures ---- */

uint64_t graph_memory_figure(unsigned gpu, CUgraphMem_attribute attribute, bool *known)
{
    *known = true;
    switch ((int)attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        return reserves[gpu].used * GRAPH_CHUNK;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return reserves[gpu].used_high * GRAPH_CHUNK;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return reserves[gpu].reserved * GRAPH_CHUNK;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return reserves[gpu].reserved_high * GRAPH_CHUNK;
    default:
        *known = false;
        return 0;
    }
}

bool graph_memory_reset_high(unsigned gpu, CUgraphMem_attribute attribute)
{
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        reserves[gpu].used_high = reserves[gpu].used;
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        reserves[gpu].reserved_high = reserves[gpu].reserved;
    else
        return false;
    return true;
}
