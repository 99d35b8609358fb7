// SPDX-License-Identifier: MIT
//
// Graph memory.

#include "conformance.h"

#define NODES 8u

static CUgraph graph;
static CUgraphNode last;

static void begin(void)
{
    QUIET(cuGraphCreate(&graph, 0));
    last = NULL;
}

static CUdeviceptr add_alloc(uint64_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = bytes};

    QUIET(cuGraphAddMemAllocNode(&last, graph, &last, last != NULL, &params));
    return params.dptr;
}

static void add_free(CUdeviceptr at)
{
    QUIET(cuGraphAddMemFreeNode(&last, graph, &last, last != NULL, at));
}

static uint64_t figure(CUgraphMem_attribute attribute)
{
    cuuint64_t value = SENTINEL;

    QUIET(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value / MIB;
}

static void show_figures(void)
{
    uint64_t reserved = figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);

    NUMBER(reserved);
    NUMBER(used);
}

/* MiB to allocate; negative: to free that one, counted from -1. 0 ends it. */
static void check_program(const int *program)
{
    CUdeviceptr at[NODES] = {0};
    unsigned count = 0;
    CUgraphExec exec;

    begin();
    for (; *program; program++) {
        if (*program < 0) {
            int freed = -*program;

            NUMBER(freed);
            add_free(at[freed - 1]);
        } else {
            uint64_t allocated = (uint64_t)*program;

            NUMBER(allocated);
            at[count] = add_alloc(allocated * MIB);
            NUMBER((at[count] - at[0]) / MIB);
            count++;
        }
    }
    CALL(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CALL(cuGraphUpload(exec, stream));
    show_figures();
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuDeviceGraphMemTrim(0));
    show_figures();
    CALL(cuGraphExecDestroy(exec));
    CALL(cuGraphDestroy(graph));
    for (unsigned i = 0; i < count; i++)
        QUIET(cuMemFree_v2(at[i]));
    CALL(cuDeviceGraphMemTrim(0));
}

static void check_programs(void)
{
    static const int programs[][2 * NODES] = {
        {40, -1},
        {40},
        {40, -1, 40, -2},
        {40, -1, 64, -2},
        {64, -1, 40, -2},
        {40, 40},
        {20, 20, 20, -1, -2, -3},
        {33, -1, 40, -2, 70, -3},
        {100, 40, 40},
        {1, 1, 1},
        {16, 16, 16, -2, 8, 4, -1, -3, -4, -5},
    };

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        section("a graph that allocates and frees");
        check_program(programs[i]);
    }
}

static void check_sharing(void)
{
    static const uint64_t sizes[3] = {20 * MIB, 40 * MIB, 100 * MIB};
    CUgraphExec exec[3];
    CUgraph graphs[3];

    section("graphs one after the other");
    for (unsigned i = 0; i < 3; i++) {
        begin();
        graphs[i] = graph;
        add_free(add_alloc(sizes[i]));
        QUIET(cuGraphInstantiateWithFlags(&exec[i], graph, 0));
    }
    CALL(cuGraphLaunch(exec[0], stream));
    CALL(cuGraphLaunch(exec[1], stream));
    CALL(cuGraphLaunch(exec[2], stream));
    show_figures();
    CALL(cuGraphLaunch(exec[0], stream));
    QUIET(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < 3; i++) {
        QUIET(cuGraphExecDestroy(exec[i]));
        QUIET(cuGraphDestroy(graphs[i]));
    }
    show_figures();
    CALL(cuDeviceGraphMemTrim(0));
    show_figures();
}

static void check_outliving(void)
{
    CUgraphExec exec, freeing;
    CUdeviceptr at, base = SENTINEL;
    CUgraph first;
    size_t bytes;

    section("graph memory that outlives its graph");
    begin();
    first = graph;
    at = add_alloc(40 * MIB);
    CALL(cuMemFree_v2(at));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuMemGetAddressRange_v2(&base, &bytes, at));
    QUIET(
        cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    begin();
    add_free(at);
    QUIET(cuGraphInstantiateWithFlags(&freeing, graph, 0));
    CALL(cuGraphLaunch(exec, stream));
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuMemGetAddressRange_v2(&base, &bytes, at + 5));
    NUMBER(base == at);
    NUMBER(bytes);
    CALL(cuGraphLaunch(freeing, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuGraphLaunch(freeing, stream));
    CALL(cuMemFree_v2(at));
    CALL(cuGraphLaunch(exec, stream));
    CALL(cuMemFreeAsync(at, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuMemFree_v2(at));
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuGraphExecDestroy(exec));
    CALL(cuGraphDestroy(first));
    CALL(cuDeviceGraphMemTrim(0));
    CALL(cuMemFree_v2(at));
    CALL(cuDeviceGraphMemTrim(0));
    QUIET(cuGraphExecDestroy(freeing));
    QUIET(cuGraphDestroy(graph));
}

static void check_captured(void)
{
    CUdeviceptr at, again;
    CUgraphExec exec = NULL;

    section("a captured graph");
    QUIET(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuMemAllocAsync(&at, 40 * MIB, stream));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuMemAllocAsync(&again, 40 * MIB, stream));
    NUMBER(at == again);
    CALL(cuStreamEndCapture(stream, &graph));
    CALL(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuMemFree_v2(again));
    CALL(cuGraphExecDestroy(exec));
    CALL(cuGraphDestroy(graph));
    CALL(cuDeviceGraphMemTrim(0));
}

static void check_child(void)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraphExec exec = NULL;
    CUgraph parent;
    CUgraphNode node;

    section("a graph that is moved into another one");
    begin();
    add_free(add_alloc(40 * MIB));
    QUIET(cuGraphCreate(&parent, 0));
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALL(cuGraphAddNode_v2(&node, parent, NULL, NULL, 0, &params));
    CALL(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CALL(cuGraphDestroy(graph));
    CALL(cuGraphDestroyNode(node));
    CALL(cuGraphInstantiateWithFlags(&exec, parent, 0));
    CALL(cuGraphLaunch(exec, stream));
    QUIET(cuStreamSynchronize(stream));
    show_figures();
    CALL(cuGraphExecDestroy(exec));
    CALL(cuGraphDestroy(parent));
    CALL(cuDeviceGraphMemTrim(0));
}

static void check_answers(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .dptr = SENTINEL};
    CUgraphExec exec = NULL, other = (CUgraphExec)SENTINEL;
    CUgraph clone = (CUgraph)SENTINEL, parent;
    CUdeviceptr at;
    CUgraphNode node;
    cuuint64_t one = 1;

    section("graphs that cannot be");
    begin();
    CALL(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params.bytesize = 64 * TIB;
    CALL(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params.bytesize = MIB;
    params.poolProps.location.id = 99;
    CALL(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params.poolProps.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    CALL(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    OUTPUT(params.dptr);
    CALL(cuGraphAddMemFreeNode(&node, graph, NULL, 0, 12345));
    at = add_alloc(MIB);
    add_free(at);
    CALL(cuGraphAddMemFreeNode(&node, graph, &last, 1, at));
    CALL(cuGraphDestroyNode(last));
    CALL(cuGraphInstantiateWithFlags(&other, graph, 16));
    CALL(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CALL(cuGraphInstantiateWithFlags(&other, graph, 0));
    OUTPUT(other);
    CALL(cuGraphClone(&clone, graph));
    OUTPUT(clone);
    QUIET(cuGraphCreate(&parent, 0));
    CALL(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
    CALL(cuGraphExecDestroy(exec));
    CALL(cuGraphDestroy(graph));
    CALL(cuGraphDestroy(parent));
    CALL(cuGraphLaunch(NULL, stream));
    CALL(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &one));
    CALL(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &one));
    CALL(cuDeviceGraphMemTrim(99));
}

void check_graphs(void)
{
    check_programs();
    check_sharing();
    check_outliving();
    check_captured();
    check_child();
    check_answers();
}
