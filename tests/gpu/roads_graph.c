/* SPDX-License-Identifier: MIT
 *
 * The roads by memory nodes of graphs. What graphs hold is the driver's own figure, since they
 * share memory where they can.
 */
#include "roads.h"

#include <string.h>
#include <unistd.h>

uint64_t roads_graph_bytes(void)
{
    cuuint64_t reserved = 0;
    roads_must(
        cu.cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved),
        "cuDeviceGetGraphMemAttribute");
    return reserved;
}

static CUgraph new_graph(size_t bytes, bool frees, CUdeviceptr *address)
{
    CUgraph graph;
    CUgraphNode node, free_node;
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = bytes;
    roads_must(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
    roads_must(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), "cuGraphAddMemAllocNode");
    if (frees)
        roads_must(cu.cuGraphAddMemFreeNode(&free_node, graph, &node, 1, params.dptr),
                   "cuGraphAddMemFreeNode");
    *address = params.dptr;
    return graph;
}

static CUgraphExec new_exec(CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;
    roads_must(cu.cuGraphInstantiateWithFlags(&exec, graph, flags), "cuGraphInstantiateWithFlags");
    return exec;
}

/* A launch that fails takes nothing, and its graph is no use any more. */
static CUresult launch(CUgraphExec exec, CUstream stream, uint64_t *got_bytes)
{
    uint64_t before = roads_graph_bytes();
    CUresult result = cu.cuGraphLaunch(exec, stream);
    if (result == CUDA_SUCCESS)
        roads_must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    uint64_t after = roads_graph_bytes();
    *got_bytes = after > before ? after - before : 0;
    return result;
}

static bool note_launch(struct hoard *hoard, CUgraphExec exec, CUstream stream)
{
    uint64_t got;
    CUresult result = launch(exec, stream, &got);
    return roads_note(hoard, result, got, "cuGraphLaunch");
}

static CUresult launch_new(CUgraph graph, unsigned long long flags, unsigned times,
                           uint64_t *got_bytes)
{
    CUgraphExec exec = new_exec(graph, flags);
    uint64_t got;
    CUresult result = CUDA_SUCCESS;
    *got_bytes = 0;
    for (unsigned i = 0; i < times && result == CUDA_SUCCESS; i++) {
        result = launch(exec, roads_streams[0], &got);
        *got_bytes += got;
    }
    if (result != CUDA_SUCCESS) {
        cu.cuGraphExecDestroy(exec);
        cu.cuGraphDestroy(graph);
    }
    return result;
}

CUresult roads_graph(size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    return launch_new(new_graph(bytes, false, &address), 0, 1, got_bytes);
}

CUresult roads_graph_auto_free(size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    return launch_new(new_graph(bytes, false, &address),
                      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 3, got_bytes);
}

CUresult roads_graph_captured(size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    CUgraph graph;
    CUstream stream = roads_streams[1];
    roads_must(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
               "cuStreamBeginCapture");
    roads_must(cu.cuMemAllocAsync(&address, bytes, stream), "cuMemAllocAsync in a capture");
    roads_must(cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    return launch_new(graph, 0, 1, got_bytes);
}

/* Graphs share memory where they can, so their sum says nothing. What no running graph needs can be
 * taken back at any time, so it is not held. */
static void count_graph_memory(struct hoard *hoard, bool is_held)
{
    hoard->held_bytes = is_held ? roads_graph_bytes() : 0;
    hoard->in_a_row = 0;
}

/* Graphs that free what they took, destroyed and not trimmed: the driver keeps their memory. Then
 * the rest by cuMemAlloc, which must see what is kept. */
void roads_walk_graph_untrimmed(struct hoard *hoard)
{
    CUdeviceptr address;
    for (size_t mib = 100; mib <= 1700; mib += 100) {
        CUgraph graph = new_graph(mib * MIB, true, &address);
        CUgraphExec exec = new_exec(graph, 0);
        note_launch(hoard, exec, roads_streams[0]);
        count_graph_memory(hoard, false);
        cu.cuGraphExecDestroy(exec);
        cu.cuGraphDestroy(graph);
    }
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Graphs whose memory outlives them share memory as long as each is freed before the next is
 * launched. Launched again without freeing they cannot. */
void roads_walk_graph_shared(struct hoard *hoard)
{
    enum { GRAPHS = 48, EACH_MIB = 64 };
    CUgraphExec execs[GRAPHS];
    CUdeviceptr addresses[GRAPHS];
    for (unsigned i = 0; i < GRAPHS; i++) {
        execs[i] = new_exec(new_graph(EACH_MIB * MIB, false, &addresses[i]), 0);
        if (note_launch(hoard, execs[i], roads_streams[0]))
            roads_must(cu.cuMemFreeAsync(addresses[i], roads_streams[0]), "cuMemFreeAsync");
        roads_must(cu.cuStreamSynchronize(roads_streams[0]), "cuStreamSynchronize");
    }
    count_graph_memory(hoard, false);
    for (unsigned i = 0; i < GRAPHS && roads_wants_more(hoard); i++)
        note_launch(hoard, execs[i], roads_streams[0]);
    count_graph_memory(hoard, true);
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

static void CUDA_CB be_slow(void *nothing)
{
    (void)nothing;
    usleep(100000);
}

/* Graphs launched into one stream run one after another and share memory; at once in several
 * streams they cannot. */
void roads_walk_graph_streams(struct hoard *hoard)
{
    enum { EACH_MIB = 450 };
    CUgraphExec execs[ROADS_STREAMS];
    CUdeviceptr address;
    for (unsigned i = 0; i < ROADS_STREAMS; i++) {
        execs[i] = new_exec(new_graph(EACH_MIB * MIB, true, &address), 0);
        note_launch(hoard, execs[i], roads_streams[0]);
    }
    count_graph_memory(hoard, false);
    for (unsigned i = 0; i < ROADS_STREAMS; i++) {
        roads_must(cu.cuLaunchHostFunc(roads_streams[i], be_slow, NULL), "cuLaunchHostFunc");
        roads_note(hoard, cu.cuGraphLaunch(execs[i], roads_streams[i]), 0, "cuGraphLaunch");
    }
    count_graph_memory(hoard, false);
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Small graphs made large after they have been looked at. */
void roads_walk_graph_update(struct hoard *hoard)
{
    enum { GRAPHS = 4, EACH_MIB = 700 };
    CUdeviceptr address;
    CUgraphExecUpdateResultInfo info;
    for (unsigned i = 0; i < GRAPHS && roads_wants_more(hoard); i++) {
        CUgraphExec exec = new_exec(new_graph(2 * MIB, false, &address), 0);
        CUgraph large = new_graph(EACH_MIB * MIB, false, &address);
        memset(&info, 0, sizeof info);
        if (cu.cuGraphExecUpdate_v2(exec, large, &info) != CUDA_SUCCESS)
            roads_skip("the driver updates no memory nodes");
        note_launch(hoard, exec, roads_streams[0]);
    }
    count_graph_memory(hoard, true);
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}
