// SPDX-License-Identifier: MIT
//
// Graphs: made, given nodes, asked. What runs them is in entry_graph_exec.c.

#include "graph.h"
#include "process.h"

#define GRAPH_BYTES_MAX ((uint64_t)1 << 39) /* an alloc node of 200 GB succeeds, of 64 TiB not */

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuGraphCreate, PROCESS_SAFE);

    if (result)
        return result;
    if (!phGraph || flags)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = graph_create();
    if (graph)
        *phGraph = graph;
    return process_leave(graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    CUresult result = process_enter(SYMBOL_cuGraphDestroy, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hGraph, HANDLE_GRAPH) || hGraph->is_child)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    graph_destroy(hGraph);
    return process_leave(CUDA_SUCCESS);
}

/* Graphs without memory are not copied either: no test looks inside a clone. */
CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    CUresult result = process_enter(SYMBOL_cuGraphClone, PROCESS_SAFE);

    if (result)
        return result;
    if (!phGraphClone || !handle_is(originalGraph, HANDLE_GRAPH))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (graph_has_memory(originalGraph))
        return process_leave(CUDA_ERROR_NOT_SUPPORTED);
    CUgraph graph = graph_create();
    if (graph)
        *phGraphClone = graph;
    return process_leave(graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

/* ---- nodes ---- */

static CUresult graph_take_plain(CUgraphNode *node, const struct graph_place *place,
                                 CUgraphNodeType type)
{
    if (!node || !graph_place_is_legal(place))
        return CUDA_ERROR_INVALID_VALUE;
    return graph_add(place, type, node);
}

static CUresult graph_take_alloc(CUgraphNode *node, const struct graph_place *place,
                                 const CUmemPoolProps *props, uint64_t bytes, CUdeviceptr *dptr)
{
    unsigned gpu;

    if (!node || !graph_place_is_legal(place) ||
        props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || !bytes ||
        props->location.type == CU_MEM_LOCATION_TYPE_INVALID)
        return CUDA_ERROR_INVALID_VALUE;
    if (place->graph->is_child || props->handleTypes ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!process_find_gpu(props->location.id, &gpu))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > GRAPH_BYTES_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = graph_add_alloc(place, props->location.id, bytes, node);
    if (result == CUDA_SUCCESS)
        *dptr = (*node)->allocation->start;
    return result;
}

static CUresult graph_take_free(CUgraphNode *node, const struct graph_place *place,
                                CUdeviceptr dptr)
{
    if (!node || !graph_place_is_legal(place))
        return CUDA_ERROR_INVALID_VALUE;
    if (place->graph->is_child)
        return CUDA_ERROR_NOT_SUPPORTED;
    return graph_add_free(place, dptr, node);
}

/* Moved into the node, or copied, which graphs with memory cannot be. */
static CUresult graph_take_child(CUgraphNode *node, const struct graph_place *place, CUgraph child,
                                 bool moved)
{
    if (!node || !graph_place_is_legal(place) || !handle_is(child, HANDLE_GRAPH) ||
        child->is_child || child == place->graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(child) && (!moved || child->executables))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUgraph inside = moved ? child : graph_create();
    CUresult result =
        inside ? graph_add(place, CU_GRAPH_NODE_TYPE_GRAPH, node) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        graph_move(inside);
        (*node)->child = inside;
    } else if (inside && !moved) {
        graph_destroy(inside);
    }
    return result;
}

static CUresult graph_take(CUgraphNode *node, const struct graph_place *place,
                           CUgraphNodeParams *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return graph_take_alloc(node, place, &params->alloc.poolProps, params->alloc.bytesize,
                                &params->alloc.dptr);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return graph_take_free(node, place, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return graph_take_child(node, place, params->graph.graph,
                                params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return graph_take_plain(node, place, params->type);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    return result ? result : process_leave(graph_take(phGraphNode, &place, nodeParams));
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddNode_v2, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    (void)dependencyData; /* how the two kernels overlap */
    return result ? result : process_leave(graph_take(phGraphNode, &place, nodeParams));
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddMemAllocNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    if (result)
        return result;
    if (!nodeParams)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(graph_take_alloc(phGraphNode, &place, &nodeParams->poolProps,
                                          nodeParams->bytesize, &nodeParams->dptr));
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddMemFreeNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    return result ? result : process_leave(graph_take_free(phGraphNode, &place, dptr));
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          CUgraph childGraph)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddChildGraphNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    return result ? result
                  : process_leave(graph_take_child(phGraphNode, &place, childGraph, false));
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddEmptyNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    return result ? result
                  : process_leave(graph_take_plain(phGraphNode, &place, CU_GRAPH_NODE_TYPE_EMPTY));
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddHostNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    if (result)
        return result;
    if (!nodeParams)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(graph_take_plain(phGraphNode, &place, CU_GRAPH_NODE_TYPE_HOST));
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUresult result = process_enter(SYMBOL_cuGraphAddMemsetNode, PROCESS_SAFE);
    struct graph_place place = {hGraph, dependencies, numDependencies};

    (void)ctx;
    if (result)
        return result;
    if (!memsetParams)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(graph_take_plain(phGraphNode, &place, CU_GRAPH_NODE_TYPE_MEMSET));
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    CUresult result = process_enter(SYMBOL_cuGraphDestroyNode, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hNode, HANDLE_NODE))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (hNode->allocation || (hNode->child && graph_has_memory(hNode->child)))
        return process_leave(CUDA_ERROR_NOT_SUPPORTED);
    graph_remove(hNode);
    return process_leave(CUDA_SUCCESS);
}

/* ---- what a graph and its nodes are ---- */

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    CUresult result = process_enter(SYMBOL_cuGraphGetNodes, PROCESS_SAFE);
    CUgraphNode node;
    size_t i = 0;

    if (result)
        return result;
    if (!handle_is(hGraph, HANDLE_GRAPH) || !numNodes)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!nodes) {
        *numNodes = hGraph->node_count;
        return process_leave(CUDA_SUCCESS);
    }
    TAILQ_FOREACH(node, &hGraph->nodes, of_graph)
    if (i < *numNodes)
        nodes[i++] = node;
    for (size_t rest = i; rest < *numNodes; rest++)
        nodes[rest] = NULL;
    *numNodes = i;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    CUresult result = process_enter(SYMBOL_cuGraphNodeGetType, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hNode, HANDLE_NODE) || !type)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *type = hNode->type;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                              CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    CUresult result = process_enter(SYMBOL_cuGraphMemAllocNodeGetParams, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hNode, HANDLE_NODE) || hNode->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        !params_out)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                   .id = hNode->allocation->space->ordinal}},
        .bytesize = hNode->allocation->bytes,
        .dptr = hNode->allocation->start,
    };
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    CUresult result = process_enter(SYMBOL_cuGraphMemFreeNodeGetParams, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hNode, HANDLE_NODE) || hNode->type != CU_GRAPH_NODE_TYPE_MEM_FREE || !dptr_out)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *dptr_out = hNode->allocation->start;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    CUresult result = process_enter(SYMBOL_cuGraphChildGraphNodeGetGraph, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hNode, HANDLE_NODE) || !hNode->child || !phGraph)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *phGraph = hNode->child;
    return process_leave(CUDA_SUCCESS);
}
