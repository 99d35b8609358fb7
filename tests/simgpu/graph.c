// SPDX-License-Identifier: MIT
//
// Graphs and nodes; see graph.h.

#include "graph.h"

#include "process.h"

#include <stdlib.h>

static unsigned walk; /* number of the last one */

CUgraph graph_create(void)
{
    CUgraph graph = handle_create(HANDLE_GRAPH, sizeof *graph);

    if (graph)
        TAILQ_INIT(&graph->nodes);
    return graph;
}

static void graph_end_node(CUgraphNode node)
{
    TAILQ_REMOVE(&node->graph->nodes, node, of_graph);
    node->graph->node_count--;
    if (node->child)
        graph_destroy(node->child);
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        graph_space_drop(node->allocation->space);
    free(node->dependencies);
    handle_destroy(&node->handle);
}

void graph_destroy(CUgraph graph)
{
    CUgraphNode node;

    graph_exec_forget(graph);
    while ((node = TAILQ_FIRST(&graph->nodes)) != NULL)
        graph_end_node(node);
    for (unsigned i = 0; i < CONFIG_DEVICES_MAX; i++)
        if (graph->space[i])
            graph_space_drop(graph->space[i]);
    handle_destroy(&graph->handle);
}

bool graph_has_memory(CUgraph graph)
{
    CUgraphNode node;

    TAILQ_FOREACH(node, &graph->nodes, of_graph)
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        (node->child && graph_has_memory(node->child)))
        return true;
    return false;
}

bool graph_place_is_legal(const struct graph_place *place)
{
    if (!handle_is(place->graph, HANDLE_GRAPH) || (place->count && !place->dependencies))
        return false;
    for (size_t i = 0; i < place->count; i++)
        if (!handle_is(place->dependencies[i], HANDLE_NODE) ||
            place->dependencies[i]->graph != place->graph)
            return false;
    return true;
}

CUresult graph_add(const struct graph_place *place, CUgraphNodeType type, CUgraphNode *node)
{
    CUgraphNode added = handle_create(HANDLE_NODE, sizeof *added);

    if (!added)
        return CUDA_ERROR_OUT_OF_MEMORY;
    added->graph = place->graph;
    added->type = type;
    added->dependency_count = place->count;
    added->dependencies = calloc(place->count + 1, sizeof(CUgraphNode));
    if (!added->dependencies) {
        handle_destroy(&added->handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < place->count; i++)
        added->dependencies[i] = place->dependencies[i];
    TAILQ_INSERT_TAIL(&place->graph->nodes, added, of_graph);
    place->graph->node_count++;
    *node = added;
    return CUDA_SUCCESS;
}

void graph_move(CUgraph graph)
{
    graph->is_child = true;
    for (unsigned i = 0; i < CONFIG_DEVICES_MAX; i++) {
        struct graph_space *space = graph->space[i];

        if (!space)
            continue;
        graph->padding[i] = graph_space_add(space, space->start + space->chunks * GRAPH_CHUNK, 1);
        if (graph->padding[i])
            graph->padding[i]->is_padding = true;
    }
}

void graph_remove(CUgraphNode node)
{
    CUgraphNode other;

    TAILQ_FOREACH(other, &node->graph->nodes, of_graph)
    for (size_t i = 0; i < other->dependency_count; i++)
        while (i < other->dependency_count && other->dependencies[i] == node)
            other->dependencies[i] = other->dependencies[--other->dependency_count];
    graph_end_node(node);
}

/* ---- where an allocation lies ---- */

static void graph_visit(CUgraphNode node)
{
    node->visit = walk;
    for (size_t i = 0; i < node->dependency_count; i++)
        if (node->dependencies[i]->visit != walk)
            graph_visit(node->dependencies[i]);
}

static uint64_t graph_end_of(const struct graph_allocation *allocation)
{
    return allocation->start + driver_round(allocation->bytes, GRAPH_SPACING);
}

/* One whose free node comes before the new node leaves its place to it. */
static bool graph_is_in_the_way(const struct graph_allocation *allocation, uint64_t start,
                                uint64_t end)
{
    if (allocation->free_node && allocation->free_node->visit == walk)
        return false;
    return allocation->start < end && start < graph_end_of(allocation);
}

static bool graph_is_free(const struct graph_space *space, uint64_t start, uint64_t size)
{
    const struct graph_allocation *allocation;

    TAILQ_FOREACH(allocation, &space->allocations, of_space)
    if (graph_is_in_the_way(allocation, start, start + size))
        return false;
    return true;
}

/* The lowest place among the addresses used so far, which is the space's start or some allocation's
 * end; else behind all of them. A driver quirk: a free rest at the end is not extended. */
static uint64_t graph_find_place(const struct graph_space *space, uint64_t bytes)
{
    const struct graph_allocation *allocation;
    uint64_t size = driver_round(bytes, GRAPH_SPACING), end = space->start;

    TAILQ_FOREACH(allocation, &space->allocations, of_space)
    if (graph_end_of(allocation) > end)
        end = graph_end_of(allocation);
    if (size > end - space->start)
        return end;
    if (graph_is_free(space, space->start, size))
        return space->start;
    uint64_t best = end;
    TAILQ_FOREACH(allocation, &space->allocations, of_space)
    {
        uint64_t at = graph_end_of(allocation);

        if (at < best && size <= end - at && graph_is_free(space, at, size))
            best = at;
    }
    return best;
}

CUresult graph_add_alloc(const struct graph_place *place, CUdevice ordinal, uint64_t bytes,
                         CUgraphNode *node)
{
    struct graph_space **space = &place->graph->space[ordinal];
    CUgraphNode added;

    if (!*space)
        *space = graph_space_create(ordinal, process.gpus[ordinal]);
    if (!*space || graph_add(place, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &added) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    walk++;
    graph_visit(added);
    added->allocation = graph_space_add(*space, graph_find_place(*space, bytes), bytes);
    if (!added->allocation) {
        graph_end_node(added);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *node = added;
    return CUDA_SUCCESS;
}

CUresult graph_add_free(const struct graph_place *place, uint64_t address, CUgraphNode *node)
{
    struct graph_allocation *allocation = graph_find_allocation(address);
    CUgraphNode added;

    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_add(place, CU_GRAPH_NODE_TYPE_MEM_FREE, &added);
    if (result)
        return result;
    added->allocation = allocation;
    graph_space_hold(allocation->space);
    if (place->graph->space[allocation->space->ordinal] == allocation->space)
        allocation->free_node = added;
    *node = added;
    return CUDA_SUCCESS;
}
