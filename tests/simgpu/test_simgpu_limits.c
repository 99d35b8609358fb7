// SPDX-License-Identifier: MIT
//
// Limits, flags and green contexts of the simulated GPU.

#include "fixture.h"

static size_t limit_of(CUlimit limit)
{
    size_t value = 0;

    assert_ok(cuCtxGetLimit(&value, limit));
    return value;
}

static void test_a_stack_is_taken_for_every_thread_at_once(void **state)
{
    (void)state;
    assert_int_equal(limit_of(CU_LIMIT_STACK_SIZE), 1024);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_int_equal(fixture_took(), 792);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    assert_int_equal(fixture_took(), 3168);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    assert_int_equal(fixture_took(), -3960);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    assert_int_equal(limit_of(CU_LIMIT_STACK_SIZE), 1008);
    assert_int_equal(fixture_took(), -4);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    assert_int_equal(fixture_took(), 4);
}

static void test_a_stack_that_does_not_fit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 700000), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(limit_of(CU_LIMIT_STACK_SIZE), 1024);
    assert_int_equal(fixture_took(), 0);
}

static void test_each_context_has_its_own_stack(void **state)
{
    CUcontext context;

    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    assert_int_equal(fixture_took(), 64 + 3960);
    assert_ok(cuCtxPopCurrent_v2(&context));
    assert_int_equal(limit_of(CU_LIMIT_STACK_SIZE), 1024);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -(64 + 3960));
}

static void test_heap_and_printf_buffer_take_nothing_before_a_kernel_does(void **state)
{
    size_t value = 77;

    (void)state;
    assert_ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * MIB));
    assert_int_equal(limit_of(CU_LIMIT_MALLOC_HEAP_SIZE), 512 * MIB);
    assert_ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 32 * TIB));
    assert_int_equal(limit_of(CU_LIMIT_PRINTF_FIFO_SIZE), 2048 * MIB);
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3),
                     CUDA_ERROR_UNSUPPORTED_LIMIT);
    assert_int_equal(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH),
                     CUDA_ERROR_UNSUPPORTED_LIMIT);
    assert_int_equal(cuCtxGetLimit(&value, (CUlimit)99), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(value, 77);
}

static void test_flags_are_checked(void **state)
{
    unsigned flags;

    (void)state;
    assert_ok(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    assert_ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags, CU_CTX_SCHED_BLOCKING_SYNC);
    assert_int_equal(cuCtxSetFlags(7), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(0, 0x8000), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(9, 0), CUDA_ERROR_INVALID_DEVICE);
    assert_ok(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_LMEM_RESIZE_TO_MAX));
    assert_ok(cuCtxSetFlags(0));
}

static CUdevResourceDesc describe(unsigned multiprocessors)
{
    CUdevResource all, part;
    CUdevResourceDesc desc;
    unsigned groups = 1;

    assert_ok(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    assert_ok(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, multiprocessors));
    assert_int_equal(groups, 1);
    assert_int_equal(part.sm.smCount, 16);
    assert_ok(cuDevResourceGenerateDesc(&desc, &part, 1));
    return desc;
}

static void test_a_green_context_keeps_the_primary_one_alive(void **state)
{
    CUdevResourceDesc desc = describe(16);
    CUcontext other, plain;
    CUgreenCtx green;
    unsigned flags;
    int active;

    (void)state;
    assert_ok(cuCtxCreate_v2(&other, 0, 0));
    assert_ok(cuDevicePrimaryCtxRelease_v2(0)); /* the fixture's */
    fixture_took();
    assert_int_equal(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_int_equal(fixture_took(), 64 + 6);
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    assert_ok(cuCtxFromGreenCtx(&plain, green));
    assert_ok(cuGreenCtxDestroy(green));
    assert_int_equal(fixture_took(), -(64 + 6));
    assert_int_equal(cuGreenCtxDestroy(NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    assert_ok(cuDevicePrimaryCtxRetain(&plain, 0));
    assert_ok(cuCtxDestroy_v2(other));
    assert_ok(cuCtxSetCurrent(plain));
    fixture_took();
}

static void test_a_green_context_has_streams_and_memory(void **state)
{
    CUdevResourceDesc desc = describe(16);
    CUgreenCtx green, again;
    CUdeviceptr linear;
    CUcontext plain;
    CUstream stream;

    (void)state;
    assert_ok(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_int_equal(cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    assert_ok(cuStreamDestroy_v2(stream));
    assert_ok(cuCtxFromGreenCtx(&plain, green));
    assert_ok(cuCtxPushCurrent_v2(plain));
    assert_ok(cuMemAlloc_v2(&linear, 50 * MIB));
    assert_ok(cuCtxPopCurrent_v2(&plain));
    assert_int_equal(fixture_took(), 6 + 50);
    assert_ok(cuGreenCtxDestroy(green));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGreenCtxCreate(&again, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuGreenCtxDestroy(again));
    assert_ok(cuMemFree_v2(linear));
    assert_int_equal(fixture_took(), -50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stack_is_taken_for_every_thread_at_once),
        cmocka_unit_test(test_a_stack_that_does_not_fit_is_refused_and_changes_nothing),
        cmocka_unit_test(test_each_context_has_its_own_stack),
        cmocka_unit_test(test_heap_and_printf_buffer_take_nothing_before_a_kernel_does),
        cmocka_unit_test(test_flags_are_checked),
        cmocka_unit_test(test_a_green_context_keeps_the_primary_one_alive),
        cmocka_unit_test(test_a_green_context_has_streams_and_memory),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
