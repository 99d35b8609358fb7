/* SPDX-License-Identifier: MIT
 *
 * entry_pool.c: pools of the program's own, and what they keep.
 */
#include "preload.h"

static CUmemoryPool create_pool(CUmemLocationType type, size_t max_bytes)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = type, .id = 0},
                            .maxSize = max_bytes};
    assert_ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void keep_reserve(CUmemoryPool pool)
{
    cuuint64_t threshold = UINT64_MAX;
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static void test_each_pool_is_charged_by_its_own_reserve(void **state)
{
    CUmemoryPool one = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemoryPool two = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr a, b;
    (void)state;
    assert_ok(cuMemAllocFromPoolAsync(&a, MIB(1), one, NULL));
    assert_ok(cuMemAllocFromPoolAsync(&b, MIB(33), two, NULL));
    assert_int_equal(preload_free(), MIB(1024 - 32 - 64));
    assert_ok(cuMemFreeAsync(a, NULL));
    assert_ok(cuMemFreeAsync(b, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuMemPoolDestroy(one));
    assert_ok(cuMemPoolDestroy(two));
}

static void test_a_trim_shows_at_once(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr piece;
    (void)state;
    keep_reserve(pool);
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(128));
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), 0);
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_a_destroyed_pool_stays_charged_until_its_last_allocation_goes(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr piece;
    (void)state;
    keep_reserve(pool);
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL));
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(preload_device_bytes(), MIB(128));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_int_equal(preload_device_bytes(), MIB(128));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(preload_free(), MIB(1024));

    pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL));
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemFree_v2(piece));
    assert_int_equal(preload_free(), MIB(1024));
}

/* Only the stream that its last free waits in, or the context, tells that it is gone. */
static void test_a_destroyed_pool_waits_for_its_own_stream(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUstream one, other;
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    assert_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, one));
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemFreeAsync(piece, one));
    assert_ok(cuStreamSynchronize(other));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(preload_device_bytes(), MIB(128));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuStreamSynchronize(one));
    assert_int_equal(preload_free(), MIB(1024));

    pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, one));
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemFreeAsync(piece, one));
    assert_ok(cuStreamDestroy_v2(one));
    assert_ok(cuStreamSynchronize(other));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuCtxSynchronize());
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuStreamDestroy_v2(other));
}

static void test_a_pool_destroyed_after_a_free_that_nobody_waited_for_stays_charged(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr piece;
    (void)state;
    keep_reserve(pool);
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(preload_free(), MIB(1024));
}

static void test_a_pool_that_nobody_used_leaves_no_trace(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3000; i++)
        assert_ok(cuMemPoolDestroy(create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0)));
}

static void test_the_pools_own_maximum_is_the_drivers_to_enforce(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, MIB(64));
    CUdeviceptr piece;
    uint64_t denials = atomic_load(&preload_device()->denials);
    (void)state;
    assert_int_equal(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(atomic_load(&preload_device()->denials), denials);
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_the_default_pool_cannot_be_destroyed_and_goes_on(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuMemAllocAsync(&piece, MIB(1), NULL));
    assert_int_not_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
}

static void test_the_pool_set_for_the_device_is_the_one_charged(void **state)
{
    CUmemoryPool pool = create_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0), before;
    CUdeviceptr piece;
    cuuint64_t reserved;
    (void)state;
    assert_ok(cuDeviceGetMemPool(&before, 0));
    assert_ok(cuDeviceSetMemPool(0, pool));
    assert_ok(cuMemAllocAsync(&piece, MIB(40), NULL));
    assert_ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    assert_int_equal(reserved, MIB(64));
    assert_int_equal(preload_free(), MIB(960));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuDeviceSetMemPool(0, before));
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_host_pools_are_free(void **state)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}};
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemPoolCreate(&pool, &props));
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(100), pool, NULL));
    assert_int_equal(preload_free(), MIB(1024));
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuMemPoolDestroy(pool));
}

/* All of it can become resident: what a device holds of it at a moment is no measure. */
static void assert_managed_is_charged(CUmemoryPool pool)
{
    CUdeviceptr piece, more;
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(1000), pool, NULL));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(1024));
    assert_int_equal(cuMemAllocFromPoolAsync(&more, MIB(1000), pool, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(preload_free(), MIB(1024));
}

static void test_a_pool_of_managed_memory_is_charged_wherever_it_is_said_to_be(void **state)
{
    static const CUmemLocationType types[] = {
        CU_MEM_LOCATION_TYPE_NONE, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        CUmemLocation location = {.type = types[i], .id = 0};
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = location};
        CUmemoryPool pool;
        assert_ok(cuMemPoolCreate(&pool, &props));
        assert_managed_is_charged(pool);
        assert_ok(cuMemPoolDestroy(pool));
        assert_ok(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED));
        assert_managed_is_charged(pool);
        assert_ok(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED));
        assert_managed_is_charged(pool);
    }
}

static void test_a_pool_of_the_hosts_memory_is_free(void **state)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool pool;
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(2000), pool, NULL));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_each_pool_is_charged_by_its_own_reserve),
        CLEAN(test_a_trim_shows_at_once),
        CLEAN(test_a_destroyed_pool_stays_charged_until_its_last_allocation_goes),
        CLEAN(test_a_destroyed_pool_waits_for_its_own_stream),
        CLEAN(test_a_pool_destroyed_after_a_free_that_nobody_waited_for_stays_charged),
        CLEAN(test_a_pool_that_nobody_used_leaves_no_trace),
        CLEAN(test_the_pools_own_maximum_is_the_drivers_to_enforce),
        CLEAN(test_the_default_pool_cannot_be_destroyed_and_goes_on),
        CLEAN(test_the_pool_set_for_the_device_is_the_one_charged),
        CLEAN(test_host_pools_are_free),
        CLEAN(test_a_pool_of_managed_memory_is_charged_wherever_it_is_said_to_be),
        CLEAN(test_a_pool_of_the_hosts_memory_is_free),
    };
    return cmocka_run_group_tests_name("pools", tests, preload_set_up, NULL);
}
