/* SPDX-License-Identifier: MIT
 *
 * entry_graph.c: a launch takes memory, so what it needs is checked before the driver sees it, and
 * what the device's graph reserve holds is charged.
 */
#include "preload.h"

#include "../cannot.h"
#include "bare.h"

static CUstream stream;
static CUgraph graph;
static CUgraphNode last; /* what the next node comes after; NULL: nothing */

static int set_up(void **state)
{
    return bare_find_loader(state) || preload_set_up(state) ||
           cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static void begin(void)
{
    assert_ok(cuGraphCreate(&graph, 0));
    last = NULL;
}

static CUdeviceptr add_allocation(uint64_t mib)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = MIB(mib)};
    assert_ok(cuGraphAddMemAllocNode(&last, graph, &last, last != NULL, &params));
    return params.dptr;
}

static void add_free(CUdeviceptr address)
{
    assert_ok(cuGraphAddMemFreeNode(&last, graph, &last, last != NULL, address));
}

static CUgraphExec end(unsigned long long flags)
{
    CUgraphExec exec;
    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

static CUgraphExec make(uint64_t mib)
{
    begin();
    add_free(add_allocation(mib));
    return end(0);
}

static void destroy(CUgraphExec exec)
{
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
}

static CUdeviceptr hold(uint64_t mib)
{
    CUdeviceptr address;
    assert_ok(cuMemAlloc_v2(&address, MIB(mib)));
    return address;
}

/* The ledger shows just what the device has given. */
static void assert_held(uint64_t mib)
{
    assert_int_equal(preload_device_bytes(), MIB(mib));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(mib));
    assert_int_equal(preload_free(), MIB(1024 - mib));
}

static int assert_clean(void **state)
{
    return cuDeviceGraphMemTrim(0) || preload_assert_clean(state);
}

static void test_memory_is_charged_from_the_first_launch_to_the_trim(void **state)
{
    (void)state;
    CUgraphExec exec = make(40);
    assert_held(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(64);
    assert_int_equal(atomic_load(&preload_device()->by_kind[GPULIMIT_KIND_GRAPH].bytes), MIB(64));
    assert_ok(cuGraphLaunch(exec, stream));
    destroy(exec);
    assert_held(64);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_held(0);
}

static void test_an_upload_is_charged_as_a_launch_is(void **state)
{
    (void)state;
    CUgraphExec exec = make(40);
    assert_ok(cuGraphUpload(exec, stream));
    assert_held(64);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(64);
    destroy(exec);
}

static void test_a_launch_that_cannot_fit_never_reaches_the_driver(void **state)
{
    (void)state;
    CUgraphExec exec = make(1025);
    uint64_t launches = simgpu_calls("cuGraphLaunch"), uploads = simgpu_calls("cuGraphUpload");
    uint64_t denials = atomic_load(&preload_device()->denials);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuGraphUpload(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(simgpu_calls("cuGraphLaunch"), launches);
    assert_int_equal(simgpu_calls("cuGraphUpload"), uploads);
    assert_int_equal(atomic_load(&preload_device()->denials), denials + 2);
    destroy(exec);
    assert_ok(cuMemFree_v2(hold(1024)));
}

static void test_an_upload_while_instantiating_is_checked_before(void **state)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                            .hUploadStream = stream};
    CUgraphExec exec = NULL;
    (void)state;
    begin();
    add_free(add_allocation(40));
    CUdeviceptr all = hold(1000);
    assert_int_equal(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
    assert_null(exec);
    assert_held(1000);
    assert_ok(cuMemFree_v2(all));
    assert_ok(cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_held(64);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(64);
    destroy(exec);
}

static void test_two_nodes_that_share_a_chunk_need_as_much_as_the_driver_takes(void **state)
{
    (void)state;
    begin();
    CUdeviceptr first = add_allocation(40), second = add_allocation(40);
    CUgraphExec exec = end(0);
    CUdeviceptr all = hold(1024 - 127); /* their addresses would fit into 96 MiB */
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(all));
    all = hold(1024 - 128);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(1024);
    assert_ok(cuMemFree_v2(first));
    assert_ok(cuMemFree_v2(second));
    assert_ok(cuMemFree_v2(all));
    destroy(exec);
}

static void test_a_captured_allocation_is_charged_when_it_is_launched(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuMemAllocAsync(&piece, MIB(40), stream));
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_ok(cuStreamEndCapture(stream, &graph));
    CUgraphExec exec = end(0);
    assert_held(0);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(64);
    destroy(exec);
}

static void test_a_node_of_any_kind_of_adding_counts(void **state)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    (void)state;
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.bytesize = MIB(600);
    begin();
    assert_ok(cuGraphAddNode(&last, graph, NULL, 0, &params));
    CUgraphExec exec = end(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    CUdeviceptr piece = hold(500);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(piece));
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(608);
    assert_ok(cuMemFree_v2(params.alloc.dptr));
    destroy(exec);
}

static void test_nodes_of_a_child_graph_count(void **state)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraph parent;
    CUgraphNode node;
    (void)state;
    begin();
    add_free(add_allocation(960));
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    assert_ok(cuGraphCreate(&parent, 0));
    assert_ok(cuGraphAddNode_v2(&node, parent, NULL, NULL, 0, &params));
    graph = parent;
    CUgraphExec exec = end(0);
    CUdeviceptr piece = hold(1024 - 991);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(piece));
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(992); /* a driver quirk: a chunk more than its nodes */
    destroy(exec);
}

static void test_an_updated_graph_is_checked_for_what_it_needs_now(void **state)
{
    CUgraphExecUpdateResultInfo told;
    (void)state;
    CUgraphExec exec = make(2);
    CUgraph small = graph;
    assert_ok(cuGraphLaunch(exec, stream));
    begin();
    add_free(add_allocation(700));
    assert_ok(cuGraphExecUpdate_v2(exec, graph, &told));
    CUdeviceptr piece = hold(500);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(piece));
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuGraphDestroy(small));
    destroy(exec);
}

/* As a graph's end with its context would be: not by a call that we see. */
static void destroy_unseen(CUgraphExec exec)
{
    CUresult (*driver_destroy)(CUgraphExec);
    *(void **)&driver_destroy = bare_dlsym(bare_driver(), "cuGraphExecDestroy");
    assert_ok(driver_destroy(exec));
}

static void test_a_handle_handed_out_again_has_no_old_need(void **state)
{
    enum { TRIES = 64 };
    CUgraphExec execs[TRIES];
    unsigned made = 0;
    bool is_same = false;
    (void)state;
    CUgraphExec dead = make(600);
    destroy_unseen(dead);
    assert_ok(cuGraphDestroy(graph));
    begin();
    for (; made < TRIES && !is_same; made++) {
        execs[made] = end(0); /* of nothing */
        is_same = execs[made] == dead;
    }
    if (is_same) {
        CUdeviceptr all = hold(1024);
        assert_ok(cuGraphLaunch(dead, stream));
        assert_ok(cuMemFree_v2(all));
    } else {
        CANNOT_BE_SEEN("no handle is handed out twice");
    }
    while (made-- > 0)
        assert_ok(cuGraphExecDestroy(execs[made]));
    assert_ok(cuGraphDestroy(graph));
}

static void test_a_reserve_that_has_shrunk_is_seen_at_the_next_look(void **state)
{
    CUresult (*driver_trim)(CUdevice);
    (void)state;
    CUgraphExec exec = make(40);
    assert_ok(cuGraphLaunch(exec, stream));
    *(void **)&driver_trim = bare_dlsym(bare_driver(), "cuDeviceGraphMemTrim");
    assert_ok(driver_trim(0)); /* as the driver does for itself on a full device */
    assert_int_equal(preload_free(), MIB(1024));
    assert_held(0);
    CUdeviceptr all = hold(1024);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(all));
    destroy(exec);
}

static void test_what_idle_graphs_hold_is_taken_back_before_anything_is_refused(void **state)
{
    (void)state;
    CUgraphExec exec = make(500);
    assert_ok(cuGraphLaunch(exec, stream));
    assert_held(512);
    CUdeviceptr all = hold(1024);
    assert_held(1024);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(all));
    assert_ok(cuGraphLaunch(exec, stream));
    destroy(exec);
}

static void test_graphs_that_take_turns_go_on_with_the_limit_full(void **state)
{
    (void)state;
    CUgraphExec first = make(600);
    CUgraph first_graph = graph;
    CUgraphExec second = make(500);
    CUdeviceptr rest = hold(1024 - 608);
    for (unsigned i = 0; i < 10; i++) {
        assert_ok(cuGraphLaunch(first, stream));
        assert_ok(cuGraphLaunch(first, stream));
        assert_ok(cuGraphLaunch(second, stream));
    }
    assert_true(preload_device_bytes() <= MIB(1024));
    assert_ok(cuMemFree_v2(rest));
    destroy(second);
    graph = first_graph;
    destroy(first);
}

/* What was there for one graph may stand behind an allocation of another now. */
static void test_a_graph_whose_memory_another_holds_is_checked_again(void **state)
{
    (void)state;
    CUgraphExec first = make(40);
    CUgraph first_graph = graph;
    assert_ok(cuGraphLaunch(first, stream));
    begin();
    CUdeviceptr piece = add_allocation(40);
    CUgraphExec second = end(0);
    assert_ok(cuGraphLaunch(second, stream));
    assert_held(64); /* the same memory */
    CUdeviceptr rest = hold(1024 - 64);
    uint64_t launches = simgpu_calls("cuGraphLaunch");
    assert_int_equal(cuGraphLaunch(first, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(simgpu_calls("cuGraphLaunch"), launches);
    assert_ok(cuMemFree_v2(piece));
    assert_ok(cuGraphLaunch(first, stream));
    assert_held(1024);
    assert_ok(cuMemFree_v2(rest));
    destroy(second);
    graph = first_graph;
    destroy(first);
}

static void test_what_a_launch_left_behind_is_not_asked_for_twice(void **state)
{
    CUdeviceptr pieces[2];
    CUgraphExec execs[2];
    CUgraph graphs[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        graphs[i] = graph;
        pieces[i] = add_allocation(500);
        execs[i] = end(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    }
    for (unsigned i = 0; i < 6; i++) {
        assert_ok(cuGraphLaunch(execs[i % 2], stream));
        assert_held(i == 0 ? 512 : 1024);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(i == 0 ? cuMemFree_v2(pieces[i]) : cuMemFreeAsync(pieces[i], stream));
        graph = graphs[i];
        destroy(execs[i]);
    }
    assert_held(1024);
}

static void test_an_allocation_that_outlives_its_graph_is_freed_without_a_trace(void **state)
{
    (void)state;
    begin();
    CUdeviceptr piece = add_allocation(40);
    CUgraphExec exec = end(0);
    assert_ok(cuGraphLaunch(exec, stream));
    destroy(exec);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_held(64);
    assert_ok(cuMemFree_v2(piece));
    assert_held(64);
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
}

static void test_a_launch_that_the_driver_refuses_costs_nothing(void **state)
{
    (void)state;
    CUgraphExec exec = make(40);
    simgpu_fail_next("cuGraphLaunch", CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_UNKNOWN);
    assert_held(0);
    simgpu_fail_next("cuGraphUpload", CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuGraphUpload(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_held(0);
    destroy(exec);
}

static void test_a_graph_without_memory_passes_with_the_limit_full(void **state)
{
    (void)state;
    CUdeviceptr all = hold(1024);
    begin();
    assert_ok(cuGraphAddEmptyNode(&last, graph, NULL, 0));
    CUgraphExec exec = end(0);
    uint64_t asked = simgpu_calls("cuDeviceGetGraphMemAttribute");
    assert_ok(cuGraphLaunch(exec, stream));
    assert_ok(cuGraphUpload(exec, stream));
    assert_int_equal(simgpu_calls("cuDeviceGetGraphMemAttribute"), asked);
    destroy(exec);
    assert_ok(cuMemFree_v2(all));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_memory_is_charged_from_the_first_launch_to_the_trim),
        CLEAN(test_an_upload_is_charged_as_a_launch_is),
        CLEAN(test_a_launch_that_cannot_fit_never_reaches_the_driver),
        CLEAN(test_an_upload_while_instantiating_is_checked_before),
        CLEAN(test_two_nodes_that_share_a_chunk_need_as_much_as_the_driver_takes),
        CLEAN(test_a_captured_allocation_is_charged_when_it_is_launched),
        CLEAN(test_a_node_of_any_kind_of_adding_counts),
        CLEAN(test_nodes_of_a_child_graph_count),
        CLEAN(test_an_updated_graph_is_checked_for_what_it_needs_now),
        CLEAN(test_a_handle_handed_out_again_has_no_old_need),
        CLEAN(test_a_reserve_that_has_shrunk_is_seen_at_the_next_look),
        CLEAN(test_what_idle_graphs_hold_is_taken_back_before_anything_is_refused),
        CLEAN(test_graphs_that_take_turns_go_on_with_the_limit_full),
        CLEAN(test_a_graph_whose_memory_another_holds_is_checked_again),
        CLEAN(test_what_a_launch_left_behind_is_not_asked_for_twice),
        CLEAN(test_an_allocation_that_outlives_its_graph_is_freed_without_a_trace),
        CLEAN(test_a_launch_that_the_driver_refuses_costs_nothing),
        CLEAN(test_a_graph_without_memory_passes_with_the_limit_full),
    };
    return cmocka_run_group_tests_name("graphs", tests, set_up, NULL);
}
