/* SPDX-License-Identifier: MIT
 *
 * Stream capture: what the library asks the driver on its own account must not end a capture of the
 * program's.
 */
#include "preload.h"

static CUstream stream;

static int set_up(void **state)
{
    return preload_set_up(state) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static void begin(void)
{
    assert_ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void end(void)
{
    CUgraph graph;
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_ok(cuGraphDestroy(graph));
}

static void test_asking_how_much_is_free_does_not_end_a_capture(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAllocAsync(&piece, MIB(1), NULL)); /* so that there is a pool to ask about */
    begin();
    assert_int_equal(preload_free(), MIB(992));
    end();
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
}

static void test_a_refusal_does_not_end_a_capture(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAllocAsync(&piece, MIB(900), NULL));
    begin();
    CUdeviceptr more;
    assert_int_equal(cuMemAlloc_v2(&more, MIB(500)), CUDA_ERROR_OUT_OF_MEMORY);
    end();
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
}

static void test_captured_allocations_are_nodes_and_cost_nothing_yet(void **state)
{
    CUdeviceptr piece;
    (void)state;
    begin();
    assert_ok(cuMemAllocAsync(&piece, MIB(2000), stream));
    assert_ok(cuMemFreeAsync(piece, stream));
    end();
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
}

static void test_the_programs_own_mode_is_left_as_it_was(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_ok(cuMemAllocAsync(&piece, MIB(1), NULL));
    assert_ok(cuMemFreeAsync(piece, NULL));
    preload_free();
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    assert_ok(cuStreamSynchronize(NULL));
}

static void test_an_unsafe_call_of_the_programs_own_still_ends_its_capture(void **state)
{
    CUdeviceptr piece;
    CUgraph graph;
    (void)state;
    begin();
    assert_int_equal(cuMemAlloc_v2(&piece, MIB(1)), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_asking_how_much_is_free_does_not_end_a_capture),
        CLEAN(test_a_refusal_does_not_end_a_capture),
        CLEAN(test_captured_allocations_are_nodes_and_cost_nothing_yet),
        CLEAN(test_the_programs_own_mode_is_left_as_it_was),
        CLEAN(test_an_unsafe_call_of_the_programs_own_still_ends_its_capture),
    };
    return cmocka_run_group_tests_name("capture", tests, set_up, NULL);
}
