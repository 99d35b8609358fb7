// SPDX-License-Identifier: MIT
//
// Contexts of the simulated GPU: what they cost, what goes with them, and what calls answer without
// one.

#include "fixture.h"

static void test_a_context_costs_and_gives_all_of_it_back(void **state)
{
    CUcontext first, second, current;
    CUdeviceptr at, other;
    unsigned version;

    (void)state;
    assert_ok(cuCtxGetCurrent(&first));
    assert_ok(cuCtxCreate_v2(&second, 0, 0));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, second);
    assert_ok(cuCtxGetApiVersion(second, &version));
    assert_int_equal(version, 3020);
    assert_ok(cuMemAlloc_v2(&at, 50 * MIB));
    assert_ok(cuMemAlloc_v2(&other, 100));
    assert_int_equal(fixture_took(), 52);
    assert_ok(cuCtxDestroy_v2(second));
    assert_int_equal(fixture_took(), -116);
    assert_ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, first);
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}

static void test_another_contexts_pointer_can_be_freed(void **state)
{
    CUcontext context;
    CUdeviceptr at;

    (void)state;
    assert_ok(cuCtxCreate_v4(&context, NULL, 0, 0));
    assert_ok(cuMemAlloc_v2(&at, 2 * MIB));
    assert_ok(cuCtxPopCurrent_v2(&context));
    fixture_took();
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), -2);
    assert_ok(cuCtxDestroy(context));
    fixture_took();
}

static void test_the_last_detach_destroys(void **state)
{
    CUcontext context, same;

    (void)state;
    assert_ok(cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    assert_ok(cuCtxAttach(&same, 0));
    assert_ptr_equal(same, context);
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuCtxDetach(context));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuCtxDetach(context));
    assert_int_equal(fixture_took(), -64);
    assert_int_equal(cuCtxDetach(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static void test_a_failed_creation_leaves_its_output_alone(void **state)
{
    CUcontext untouched = (CUcontext)state;
    CUdeviceptr at;
    size_t left;

    assert_int_equal(cuCtxCreate_v2(&untouched, 0, 99), CUDA_ERROR_INVALID_DEVICE);
    assert_ok(cuMemGetInfo_v2(&left, NULL));
    assert_ok(cuMemAlloc_v2(&at, left));
    assert_int_equal(cuCtxCreate_v2(&untouched, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(untouched, state);
    assert_ok(cuMemFree_v2(at));
    fixture_took();
}

static void test_without_a_context_what_needs_one_answers_201(void **state)
{
    CUcontext context;
    CUstream stream;
    CUdeviceptr at = 7, mine;
    size_t left = 7, pitch = 7;
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdevice device;
    void *host;

    (void)state;
    assert_ok(cuMemAlloc_v2(&mine, 100));
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuCtxPopCurrent_v2(&context));
    assert_int_equal(cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemAlloc_v2(&at, 100), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(at, 0);
    assert_int_equal(cuMemAlloc_v2(&at, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemAllocPitch_v2(&at, &pitch, 1000, 10, 4), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(pitch, 0);
    assert_int_equal(cuMemAllocManaged(&at, 100, 1), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemHostAlloc(&host, 100, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemGetInfo_v2(&left, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(left, 0);
    assert_int_equal(cuMemAllocAsync(&at, 100, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuMemFree_v2(mine), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(0));

    assert_ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemAllocAsync(&at, 100, stream)); /* the stream says which device */
    assert_ok(cuMemFreeAsync(at, stream));
    assert_ok(cuStreamSynchronize(stream));
    CUmemoryPool pool = fixture_create_pool(0, 0);
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuDeviceTotalMem_v2(&left, 0));
    assert_int_equal(left, 8192 * MIB);

    assert_ok(cuCtxPushCurrent_v2(context));
    assert_ok(cuStreamDestroy_v2(stream));
    assert_ok(cuMemFree_v2(mine));
    fixture_took();
}

static void test_a_reset_keeps_pools_and_vmm_memory(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    CUcontext context, again;
    CUstream stream;
    CUdeviceptr at;
    CUdevice device = -1;
    unsigned flags;
    int active;

    (void)state;
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuMemAllocFromPoolAsync(&at, 100 * MIB, pool, stream));
    assert_ok(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    assert_ok(cuMemAlloc_v2(&at, 10 * MIB));
    assert_int_equal(fixture_took(), 128 + 32 + 10);
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(fixture_took(), -10 - 64);
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);

    assert_int_equal(cuMemGetInfo_v2(NULL, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuMemAlloc_v2(&at, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuMemFree_v2(0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_ok(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);

    assert_ok(cuCtxGetCurrent(&context));
    assert_ok(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(again, context);
    assert_ok(cuMemGetInfo_v2(NULL, NULL));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuDevicePrimaryCtxRelease(0)); /* the reset left the count alone */
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    assert_ok(cuMemRelease(handle));
    assert_int_equal(fixture_took(), -32);
}

static void test_the_last_release_ends_the_primary_context(void **state)
{
    CUcontext context;

    (void)state;
    assert_ok(cuCtxGetCurrent(&context));
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(fixture_took(), -64);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuDevicePrimaryCtxReset(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_context_costs_and_gives_all_of_it_back),
        cmocka_unit_test(test_another_contexts_pointer_can_be_freed),
        cmocka_unit_test(test_the_last_detach_destroys),
        cmocka_unit_test(test_a_failed_creation_leaves_its_output_alone),
        cmocka_unit_test(test_without_a_context_what_needs_one_answers_201),
        cmocka_unit_test(test_a_reset_keeps_pools_and_vmm_memory),
        cmocka_unit_test(test_the_last_release_ends_the_primary_context),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
