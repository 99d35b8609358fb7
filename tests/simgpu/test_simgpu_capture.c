// SPDX-License-Identifier: MIT
//
// Stream capture on the simulated GPU: what it forbids, what it records, and that it charges
// nothing.

#include "fixture.h"

#include <pthread.h>

static CUstream stream, other;

static int capture_set_up(void **state)
{
    fixture_set_up(state);
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return (int)cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
}

static void begin(void)
{
    assert_ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void end(CUresult expected)
{
    CUgraph graph = NULL;

    assert_int_equal(cuStreamEndCapture(stream, &graph), expected);
    assert_int_equal(graph != NULL, expected == CUDA_SUCCESS);
    if (graph)
        assert_ok(cuGraphDestroy(graph));
}

static CUmemoryPool default_pool(void)
{
    CUmemoryPool pool;

    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static CUresult call_alloc(void)
{
    CUdeviceptr at;

    return cuMemAlloc_v2(&at, 100);
}

static CUresult call_free_nothing(void)
{
    return cuMemFree_v2(0);
}

static CUresult call_managed(void)
{
    CUdeviceptr at;

    return cuMemAllocManaged(&at, 100, 1);
}

static CUresult call_pool_get(void)
{
    cuuint64_t value;

    return cuMemPoolGetAttribute(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
}

static CUresult call_pool_trim(void)
{
    return cuMemPoolTrimTo(default_pool(), 0);
}

static CUresult call_alloc_elsewhere(void)
{
    CUdeviceptr at;

    return cuMemAllocAsync(&at, 100, other);
}

static CUresult call_synchronize(void)
{
    return cuStreamSynchronize(other);
}

static CUresult call_stream_device(void)
{
    CUdevice device;

    return cuStreamGetDevice(stream, &device);
}

static void test_unsafe_calls_answer_900_and_spoil_the_capture(void **state)
{
    CUresult (*const calls[])(void) = {call_alloc,       call_free_nothing, call_managed,
                                       call_pool_get,    call_pool_trim,    call_alloc_elsewhere,
                                       call_synchronize, call_stream_device};
    CUstreamCaptureStatus status;

    (void)state;
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        begin();
        assert_int_equal(calls[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_ok(cuStreamIsCapturing(stream, &status));
        assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        assert_int_equal(calls[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_int_not_equal(calls[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    assert_ok(cuDevicePrimaryCtxReset_v2(0)); /* what the last round allocated */
    CUcontext context;
    assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
    capture_set_up(state);
}

static void test_relaxed_mode_allows_them(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr at;

    (void)state;
    begin();
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_ok(cuMemAlloc_v2(&at, 100));
    assert_ok(call_pool_get());
    assert_ok(call_pool_trim());
    assert_ok(cuMemFree_v2(at));
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    end(CUDA_SUCCESS);
}

static void test_queries_and_vmm_are_safe(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    CUstreamCaptureStatus status;
    CUcontext context;
    CUmemoryPool pool;
    cuuint64_t value = 7;
    size_t left;

    (void)state;
    begin();
    assert_ok(cuMemGetInfo_v2(&left, NULL));
    assert_ok(cuDeviceTotalMem_v2(&left, 0));
    assert_ok(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
    assert_int_equal(value, 0);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_ok(cuDeviceGetMemPool(&pool, 0));
    assert_ok(cuStreamGetCtx(stream, &context));
    assert_ok(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    assert_ok(cuMemRelease(handle));
    end(CUDA_SUCCESS);
}

static void test_captured_allocations_cost_nothing(void **state)
{
    CUdeviceptr at, kept;

    (void)state;
    fixture_took();
    begin();
    assert_ok(cuMemAllocAsync(&kept, 40 * MIB, stream));
    assert_ok(cuMemAllocAsync(&at, 1 << 30, stream));
    assert_true(kept && at && kept != at);
    assert_ok(cuMemFreeAsync(at, stream));
    assert_int_equal(cuMemFreeAsync(at, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFreeAsync(0x1234, stream), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeAsync(0, stream));
    assert_int_equal(cuMemAllocAsync(&at, 64 * TIB, stream), CUDA_ERROR_OUT_OF_MEMORY);
    end(CUDA_SUCCESS);
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuMemFree_v2(kept), CUDA_ERROR_INVALID_VALUE);
}

static void test_an_invalid_capture_takes_no_more_nodes(void **state)
{
    CUdeviceptr at = 7;

    (void)state;
    begin();
    call_alloc();
    assert_int_equal(cuMemAllocAsync(&at, 16, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(at, 0);
    end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void test_a_stream_joins_by_an_event(void **state)
{
    CUstreamCaptureStatus status;
    CUevent event;
    CUgraph graph;

    (void)state;
    assert_ok(cuEventCreate(&event, 0));
    begin();
    assert_ok(cuEventRecord(event, stream));
    assert_ok(cuStreamWaitEvent(other, event, 0));
    assert_ok(cuStreamIsCapturing(other, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end(CUDA_SUCCESS);
    assert_ok(cuStreamIsCapturing(other, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);

    begin();
    assert_ok(cuEventRecord(event, stream));
    assert_int_equal(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_ok(cuEventDestroy_v2(event));
}

static void test_captures_begin_and_end_in_order(void **state)
{
    CUgraph graph;

    (void)state;
    assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(cuStreamBeginCapture(NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_ok(cuStreamBeginCapture(stream));
    assert_int_equal(cuStreamBeginCapture(stream), CUDA_ERROR_ILLEGAL_STATE);
    end(CUDA_SUCCESS);
}

static void *alloc_on_another_thread(void *context)
{
    CUdeviceptr at = 0;
    CUresult result = cuCtxSetCurrent(context);

    if (result == CUDA_SUCCESS)
        result = cuMemAlloc_v2(&at, 100);
    if (result == CUDA_SUCCESS)
        result = cuMemFree_v2(at);
    return (void *)(uintptr_t)result;
}

static void test_only_global_captures_disturb_other_threads(void **state)
{
    static const struct {
        CUstreamCaptureMode mode;
        CUresult call, end;
    } rows[] = {
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         CUDA_ERROR_STREAM_CAPTURE_INVALIDATED},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_SUCCESS, CUDA_SUCCESS},
        {CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS, CUDA_SUCCESS},
    };
    CUcontext context;
    pthread_t thread;
    void *result;

    (void)state;
    assert_ok(cuCtxGetCurrent(&context));
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(cuStreamBeginCapture_v2(stream, rows[i].mode));
        assert_int_equal(pthread_create(&thread, NULL, alloc_on_another_thread, context), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal((uintptr_t)result, rows[i].call);
        end(rows[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsafe_calls_answer_900_and_spoil_the_capture),
        cmocka_unit_test(test_relaxed_mode_allows_them),
        cmocka_unit_test(test_queries_and_vmm_are_safe),
        cmocka_unit_test(test_captured_allocations_cost_nothing),
        cmocka_unit_test(test_an_invalid_capture_takes_no_more_nodes),
        cmocka_unit_test(test_a_stream_joins_by_an_event),
        cmocka_unit_test(test_captures_begin_and_end_in_order),
        cmocka_unit_test(test_only_global_captures_disturb_other_threads),
    };

    return cmocka_run_group_tests(tests, capture_set_up, NULL);
}
