/* SPDX-License-Identifier: MIT
 *
 * entry_context.c: what dies with a context leaves the ledger, and what does not stays.
 */
#include "preload.h"

static CUcontext primary;

static int set_up(void **state)
{
    return preload_set_up(state) || cuCtxGetCurrent(&primary);
}

/* Every test leaves the primary context current, retained once. */
static int clean_up(void **state)
{
    assert_ok(cuCtxSetCurrent(primary));
    return preload_assert_clean(state);
}

static CUdeviceptr allocate(uint64_t bytes)
{
    CUdeviceptr piece;
    assert_ok(cuMemAlloc_v2(&piece, bytes));
    return piece;
}

static void test_a_destroyed_context_takes_its_memory_along(void **state)
{
    CUcontext context;
    (void)state;
    CUdeviceptr mine = allocate(MIB(10));
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    allocate(MIB(50));
    allocate(4096);
    CUdeviceptr managed;
    assert_ok(cuMemAllocManaged(&managed, MIB(20), CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(preload_free(), MIB(1024 - 10 - 50 - 2 - 20));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuCtxSetCurrent(primary));
    assert_int_equal(preload_free(), MIB(1014));
    assert_int_equal(preload_device_bytes(), MIB(10));
    assert_ok(cuMemFree_v2(mine));
}

static void test_each_way_to_create_and_destroy_a_context_counts(void **state)
{
    CUcontext context;
    (void)state;
    assert_ok(cuCtxCreate(&context, 0, 0));
    allocate(MIB(10));
    assert_ok(cuCtxDestroy(context));
    assert_ok(cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    allocate(MIB(10));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuCtxCreate_v4(&context, NULL, 0, 0));
    allocate(MIB(10));
    assert_ok(cuCtxDestroy_v2(context));
}

static void test_a_context_that_the_driver_keeps_keeps_its_memory(void **state)
{
    CUcontext context;
    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    allocate(MIB(50));
    simgpu_fail_next("cuCtxDestroy_v2", CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_ERROR_UNKNOWN);
    assert_int_equal(preload_free(), MIB(974));
    assert_ok(cuCtxDestroy_v2(context));
}

static void test_an_attached_context_dies_with_its_last_user(void **state)
{
    CUcontext context, same;
    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    assert_ok(cuCtxAttach(&same, 0));
    assert_ptr_equal(same, context);
    allocate(MIB(50));
    assert_ok(cuCtxDetach(context));
    assert_int_equal(preload_free(), MIB(974));
    assert_ok(cuCtxDetach(context));
}

static void test_the_last_release_of_a_primary_context_takes_its_memory_along(void **state)
{
    CUcontext again;
    (void)state;
    allocate(MIB(50));
    assert_ok(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ok(cuDevicePrimaryCtxRelease(0));
    assert_int_equal(preload_free(), MIB(974));
    assert_ok(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
    assert_ok(cuDevicePrimaryCtxRetain(&primary, 0));
}

static CUgreenCtx create_green(void)
{
    CUdevResource all, part;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext plain;
    unsigned groups = 1;
    assert_ok(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    assert_ok(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 16));
    assert_ok(cuDevResourceGenerateDesc(&desc, &part, 1));
    assert_ok(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_ok(cuCtxFromGreenCtx(&plain, green));
    assert_ok(cuCtxSetCurrent(plain));
    return green;
}

/* It is a part of the primary context, and one of its users. */
static void test_memory_of_a_green_context_is_the_primary_ones(void **state)
{
    (void)state;
    CUgreenCtx green = create_green();
    allocate(MIB(50));
    assert_ok(cuGreenCtxDestroy(green));
    assert_int_equal(preload_free(), MIB(974));
    green = create_green();
    assert_ok(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(preload_free(), MIB(974));
    assert_ok(cuGreenCtxDestroy(green)); /* the last user */
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
    assert_ok(cuDevicePrimaryCtxRetain(&primary, 0));
}

static void test_a_reset_keeps_pools_and_vmm_memory(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = preload_device_prop();
    CUmemoryPool pool;
    CUdeviceptr piece;
    cuuint64_t threshold = UINT64_MAX;
    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    assert_ok(cuMemAllocAsync(&piece, MIB(100), NULL));
    assert_ok(cuMemCreate(&handle, MIB(200), &prop, 0));
    allocate(MIB(50));
    assert_int_equal(preload_free(), MIB(1024 - 128 - 200 - 50));
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(328));
    assert_ok(cuDevicePrimaryCtxRetain(&primary, 0));
    assert_ok(cuCtxSetCurrent(primary));
    assert_int_equal(preload_free(), MIB(1024 - 328));
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemFree_v2(piece));
    assert_ok(cuMemPoolTrimTo(pool, 0));
    threshold = 0;
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static void test_a_reset_leaves_other_contexts_alone(void **state)
{
    CUcontext context;
    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    allocate(MIB(50));
    assert_ok(cuDevicePrimaryCtxReset(0));
    assert_int_equal(preload_free(), MIB(974));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuDevicePrimaryCtxRetain(&primary, 0));
}

static void test_another_contexts_memory_can_be_freed_from_here(void **state)
{
    CUcontext context;
    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr piece = allocate(MIB(50));
    assert_ok(cuCtxSetCurrent(primary));
    assert_ok(cuMemFree_v2(piece));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuCtxDestroy_v2(context));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_a_destroyed_context_takes_its_memory_along),
        CLEAN(test_each_way_to_create_and_destroy_a_context_counts),
        CLEAN(test_a_context_that_the_driver_keeps_keeps_its_memory),
        CLEAN(test_an_attached_context_dies_with_its_last_user),
        CLEAN(test_the_last_release_of_a_primary_context_takes_its_memory_along),
        CLEAN(test_memory_of_a_green_context_is_the_primary_ones),
        CLEAN(test_a_reset_keeps_pools_and_vmm_memory),
        CLEAN(test_a_reset_leaves_other_contexts_alone),
        CLEAN(test_another_contexts_memory_can_be_freed_from_here),
    };
    return cmocka_run_group_tests_name("contexts", tests, set_up, NULL);
}
