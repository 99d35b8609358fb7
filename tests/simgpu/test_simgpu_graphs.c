// SPDX-License-Identifier: MIT
//
// Graphs of the simulated GPU: their nodes' addresses, and the reserve behind them.

#include "fixture.h"

static CUstream stream;
static CUgraph graph;
static CUgraphNode last; /* what the next node comes after; NULL: nothing */

static int set_up(void **state)
{
    fixture_set_up(state);
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return 0;
}

static void begin(void)
{
    assert_ok(cuGraphCreate(&graph, 0));
    last = NULL;
}

static CUDA_MEM_ALLOC_NODE_PARAMS ask(uint64_t bytes)
{
    return (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = bytes};
}

static CUdeviceptr add_alloc(uint64_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = ask(bytes);

    assert_ok(cuGraphAddMemAllocNode(&last, graph, &last, last != NULL, &params));
    return params.dptr;
}

static void add_free(CUdeviceptr at)
{
    assert_ok(cuGraphAddMemFreeNode(&last, graph, &last, last != NULL, at));
}

static CUgraphExec end(unsigned long long flags)
{
    CUgraphExec exec;

    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

static uint64_t figure(CUgraphMem_attribute attribute)
{
    cuuint64_t value = 0;

    assert_ok(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value / MIB;
}

static void finish(CUgraphExec exec)
{
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    fixture_took();
}

static void test_memory_comes_at_the_first_launch_and_goes_at_a_trim(void **state)
{
    (void)state;
    begin();
    CUdeviceptr at = add_alloc(40 * MIB);
    add_free(at);
    CUgraphExec exec = end(0);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 64);
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 64);
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 64);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -64);
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

static void test_an_upload_takes_what_the_launch_needs(void **state)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    CUgraphExec exec;

    (void)state;
    begin();
    add_free(add_alloc(40 * MIB));
    exec = end(0);
    assert_ok(cuGraphUpload(exec, stream));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -64);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64);
    finish(exec);

    begin();
    add_free(add_alloc(3 * MIB));
    params.hUploadStream = stream;
    assert_ok(cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    assert_int_equal(fixture_took(), 32);
    finish(exec);
}

static void test_an_address_is_used_again_after_its_free_node(void **state)
{
    (void)state;
    begin();
    CUdeviceptr first = add_alloc(40 * MIB);
    CUgraphNode alloc = last;
    add_free(first);
    assert_int_equal(add_alloc(40 * MIB), first);
    last = alloc; /* not behind the free node */
    assert_int_equal(add_alloc(MIB), first + 40 * MIB);
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuMemFree_v2(first));
    assert_ok(cuMemFree_v2(first + 40 * MIB));
    finish(exec);
}

static void test_neighbours_share_chunks(void **state)
{
    (void)state;
    begin();
    CUdeviceptr at = add_alloc(20 * MIB);
    assert_int_equal(add_alloc(20 * MIB), at + 20 * MIB);
    assert_int_equal(add_alloc(20 * MIB), at + 40 * MIB);
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(cuMemFree_v2(at + i * 20 * MIB));
    finish(exec);
}

static void test_a_node_takes_its_own_size_even_where_it_shares_a_chunk(void **state)
{
    (void)state;
    begin();
    CUdeviceptr at = add_alloc(40 * MIB);
    assert_int_equal(add_alloc(40 * MIB), at + 40 * MIB);
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 128);
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 96);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -32);
    assert_ok(cuMemFree_v2(at));
    assert_ok(cuMemFree_v2(at + 40 * MIB));
    finish(exec);
}

static void test_a_free_rest_at_the_end_is_not_extended(void **state)
{
    (void)state;
    begin();
    CUdeviceptr at = add_alloc(40 * MIB);
    add_free(at);
    assert_int_equal(add_alloc(64 * MIB), at + 40 * MIB);
    add_free(at + 40 * MIB);
    assert_int_equal(add_alloc(100 * MIB), at); /* of both */
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 128);
    assert_ok(cuMemFree_v2(at));
    finish(exec);
}

static void test_a_full_device_takes_the_idle_reserve_back(void **state)
{
    CUdeviceptr linear[2];

    (void)state;
    begin();
    add_free(add_alloc(1024 * MIB));
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 1024);
    assert_ok(cuMemAlloc_v2(&linear[0], 7000 * MIB));
    assert_ok(cuMemAlloc_v2(&linear[1], 1000 * MIB));
    assert_int_equal(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(fixture_took(), 8000 - 1024);
    assert_ok(cuMemFree_v2(linear[0]));
    assert_ok(cuMemFree_v2(linear[1]));
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 1024 - 8000);
    finish(exec);
}

static void test_graphs_share_the_reserve_unless_they_hold_on_to_it(void **state)
{
    CUgraphExec exec[3];
    CUgraph graphs[3];
    CUdeviceptr at[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        graphs[i] = graph;
        at[i] = add_alloc(40 * MIB);
        if (i < 2)
            add_free(at[i]);
        exec[i] = end(0);
    }
    assert_ok(cuGraphLaunch(exec[0], stream));
    assert_ok(cuGraphLaunch(exec[1], stream));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuGraphLaunch(exec[2], stream));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGraphLaunch(exec[0], stream)); /* beside the live allocation */
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -64);
    assert_ok(cuMemFree_v2(at[2]));
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(cuGraphExecDestroy(exec[i]));
        assert_ok(cuGraphDestroy(graphs[i]));
    }
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -64);
}

static void test_an_allocation_outlives_its_graph(void **state)
{
    CUdeviceptr base;
    size_t bytes;

    (void)state;
    begin();
    CUdeviceptr at = add_alloc(40 * MIB);
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetAddressRange_v2(&base, &bytes, at), CUDA_ERROR_NOT_FOUND);
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuMemGetAddressRange_v2(&base, &bytes, at + 5));
    assert_int_equal(base, at);
    assert_int_equal(bytes, 40 * MIB);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeAsync(at, stream));
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_int_equal(fixture_took(), -64);
}

static void test_another_graph_may_free(void **state)
{
    (void)state;
    begin();
    CUgraph first = graph;
    CUdeviceptr at = add_alloc(40 * MIB);
    CUgraphExec exec = end(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    begin();
    add_free(at);
    CUgraphExec freeing = end(0);
    assert_int_equal(cuGraphLaunch(freeing, stream), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuGraphLaunch(freeing, stream));
    assert_int_equal(cuGraphLaunch(freeing, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuGraphLaunch(exec, stream)); /* frees its own first */
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuGraphLaunch(freeing, stream));
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(first));
    finish(freeing);
}

static void test_a_captured_allocation_is_a_node(void **state)
{
    CUdeviceptr first, second;
    CUgraphNode nodes[4];
    CUgraphNodeType type;
    size_t count = 4;

    (void)state;
    assert_ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuMemAllocAsync(&first, 40 * MIB, stream));
    assert_ok(cuMemFreeAsync(first, stream));
    assert_ok(cuMemAllocAsync(&second, 40 * MIB, stream));
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_int_equal(first, second);
    assert_ok(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 3);
    assert_ok(cuGraphGetNodes(graph, nodes, &count));
    assert_ok(cuGraphNodeGetType(nodes[1], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
    CUgraphExec exec = end(0);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuMemFree_v2(second));
    finish(exec);
}

static void test_graphs_with_memory_are_unique(void **state)
{
    CUgraphExec exec, other = (CUgraphExec)7;
    CUgraph clone = (CUgraph)7, parent;
    CUgraphNode child;

    (void)state;
    begin();
    add_free(add_alloc(MIB));
    exec = end(0);
    assert_int_equal(cuGraphInstantiateWithFlags(&other, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    assert_ptr_equal(other, (CUgraphExec)7);
    assert_ptr_equal(clone, (CUgraph)7);
    assert_ok(cuGraphCreate(&parent, 0));
    assert_int_equal(cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuGraphDestroyNode(last), CUDA_ERROR_NOT_SUPPORTED);
    assert_ok(cuGraphExecDestroy(exec));
    exec = end(0); /* again, now that there is none */
    assert_ok(cuGraphDestroy(parent));
    finish(exec);
}

static void test_a_moved_child_graph_brings_its_memory(void **state)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraph inside, parent;
    CUgraphNode node;
    CUgraphExec exec;

    (void)state;
    begin();
    add_free(add_alloc(40 * MIB));
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    assert_ok(cuGraphCreate(&parent, 0));
    assert_ok(cuGraphAddNode_v2(&node, parent, NULL, NULL, 0, &params));
    assert_ok(cuGraphChildGraphNodeGetGraph(node, &inside));
    assert_ptr_equal(inside, graph);
    assert_int_equal(cuGraphDestroy(inside), CUDA_ERROR_INVALID_VALUE);
    graph = parent;
    exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 64 + 32); /* a chunk more than by itself */
    finish(exec);
}

static void test_an_update_changes_what_a_launch_takes(void **state)
{
    CUgraphExecUpdateResultInfo told;
    CUgraphExec exec, other;

    (void)state;
    begin();
    CUgraph small = graph;
    add_free(add_alloc(2 * MIB));
    exec = end(0);
    begin();
    assert_int_equal(cuGraphExecUpdate_v2(exec, graph, &told),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(told.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    add_free(add_alloc(70 * MIB));
    assert_ok(cuGraphExecUpdate_v2(exec, graph, &told));
    assert_int_equal(told.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(fixture_took(), 96);
    assert_int_equal(cuGraphInstantiateWithFlags(&other, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_ok(cuGraphInstantiateWithFlags(&other, small, 0));
    assert_ok(cuGraphExecDestroy(other));
    assert_ok(cuGraphDestroy(small));
    finish(exec);
}

static void test_nodes_answer_by_what_is_wrong(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = ask(0), told;
    CUdeviceptr linear;
    CUgraphNode node;

    (void)state;
    begin();
    params.dptr = 7;
    assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
                     CUDA_ERROR_INVALID_VALUE);
    params.bytesize = 64 * TIB;
    assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
                     CUDA_ERROR_OUT_OF_MEMORY);
    params.bytesize = MIB;
    params.poolProps.location.id = 9;
    assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
                     CUDA_ERROR_INVALID_VALUE);
    params.poolProps.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    assert_int_equal(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(params.dptr, 7);
    assert_ok(cuMemAlloc_v2(&linear, MIB));
    assert_int_equal(cuGraphAddMemFreeNode(&node, graph, NULL, 0, linear),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(linear));
    CUdeviceptr at = add_alloc(MIB);
    assert_ok(cuGraphMemAllocNodeGetParams(last, &told));
    assert_int_equal(told.dptr, at);
    assert_int_equal(told.bytesize, MIB);
    add_free(at);
    assert_int_equal(cuGraphAddMemFreeNode(&node, graph, &last, 1, at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGraphMemFreeNodeGetParams(last, &linear));
    assert_int_equal(linear, at);
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(cuGraphLaunch(NULL, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGraphDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
    fixture_took();
}

/* Last: what is left of the device is gone after it. */
static void test_a_launch_that_cannot_be_served_leaks_the_device(void **state)
{
    CUdeviceptr linear;

    (void)state;
    begin();
    add_alloc(200 * 1024 * MIB);
    CUgraphExec exec = end(0);
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(simgpu_device_used(0), 8192 * MIB);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(simgpu_device_used(0), 8192 * MIB);
    assert_int_equal(cuMemAlloc_v2(&linear, MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_comes_at_the_first_launch_and_goes_at_a_trim),
        cmocka_unit_test(test_an_upload_takes_what_the_launch_needs),
        cmocka_unit_test(test_an_address_is_used_again_after_its_free_node),
        cmocka_unit_test(test_neighbours_share_chunks),
        cmocka_unit_test(test_a_node_takes_its_own_size_even_where_it_shares_a_chunk),
        cmocka_unit_test(test_a_free_rest_at_the_end_is_not_extended),
        cmocka_unit_test(test_a_full_device_takes_the_idle_reserve_back),
        cmocka_unit_test(test_graphs_share_the_reserve_unless_they_hold_on_to_it),
        cmocka_unit_test(test_an_allocation_outlives_its_graph),
        cmocka_unit_test(test_another_graph_may_free),
        cmocka_unit_test(test_a_captured_allocation_is_a_node),
        cmocka_unit_test(test_graphs_with_memory_are_unique),
        cmocka_unit_test(test_a_moved_child_graph_brings_its_memory),
        cmocka_unit_test(test_an_update_changes_what_a_launch_takes),
        cmocka_unit_test(test_nodes_answer_by_what_is_wrong),
        cmocka_unit_test(test_a_launch_that_cannot_be_served_leaks_the_device),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
