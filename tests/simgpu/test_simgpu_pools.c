// SPDX-License-Identifier: MIT
//
// Pools and stream-ordered memory of the simulated GPU: the reserve in chunks, when it goes back,
// what calls answer.

#include "fixture.h"

static CUstream stream;

static int pools_set_up(void **state)
{
    fixture_set_up(state);
    return (int)cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static CUdeviceptr take(CUmemoryPool pool, uint64_t bytes)
{
    CUdeviceptr at = 0;

    assert_ok(cuMemAllocFromPoolAsync(&at, bytes, pool, stream));
    assert_true(at);
    return at;
}

static void put(CUdeviceptr at)
{
    assert_ok(cuMemFreeAsync(at, stream));
}

static uint64_t used(CUmemoryPool pool)
{
    cuuint64_t value = 0;

    assert_ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    return value;
}

static void test_a_pool_reserves_chunks_of_32_mib(void **state)
{
    static const uint64_t rows[][2] = {
        {1, 32}, {33 * MIB, 64}, {64 * MIB, 64}, {100 * MIB, 128}, {1024 * MIB, 1024}};

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUmemoryPool pool = fixture_create_pool(0, 0);
        CUdeviceptr at = take(pool, rows[i][0]);

        assert_int_equal(fixture_reserved(pool), rows[i][1]);
        assert_int_equal(fixture_took(), rows[i][1]);
        assert_int_equal(used(pool), rows[i][0]);
        put(at);
        assert_int_equal(used(pool), 0);
        assert_int_equal(fixture_took(), 0);
        assert_ok(cuStreamSynchronize(stream));
        assert_int_equal(fixture_took(), -(int64_t)rows[i][1]);
        assert_ok(cuMemPoolDestroy(pool));
    }
}

static void test_the_threshold_keeps_what_synchronising_would_give_back(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUdeviceptr at = take(pool, 100 * MIB);

    (void)state;
    put(at);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_took(), 128);
    at = take(pool, 50 * MIB);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemPoolTrimTo(pool, 0)); /* of the 128, two chunks are in use */
    assert_int_equal(fixture_took(), -64);
    put(at);
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(fixture_took(), -64);
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_trimming_stays_above_and_the_threshold_goes_below(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    cuuint64_t threshold = 40 * MIB;

    (void)state;
    put(take(pool, 128 * MIB));
    assert_ok(cuMemPoolTrimTo(pool, SIZE_MAX));
    assert_int_equal(fixture_reserved(pool), 128);
    assert_ok(cuMemPoolTrimTo(pool, 50 * MIB));
    assert_int_equal(fixture_reserved(pool), 64);
    assert_ok(cuMemPoolTrimTo(pool, 31 * MIB));
    assert_int_equal(fixture_reserved(pool), 32);
    put(take(pool, 128 * MIB));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    assert_int_equal(fixture_reserved(pool), 128);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_ok(cuMemPoolDestroy(pool));
    fixture_took();
}

static void test_a_fragmented_pool_grows(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUdeviceptr at[8], more;

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        at[i] = take(pool, 16 * MIB);
    assert_int_equal(fixture_reserved(pool), 128);
    for (unsigned i = 0; i < 8; i += 2)
        put(at[i]);
    assert_int_equal(used(pool), 64 * MIB);
    more = take(pool, 32 * MIB);
    assert_int_equal(fixture_reserved(pool), 160);
    put(more);
    for (unsigned i = 1; i < 8; i += 2)
        put(at[i]);
    assert_ok(cuMemPoolDestroy(pool));
    fixture_took();
}

static void test_idle_chunks_move_to_where_they_are_needed(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUdeviceptr at[4], more;

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        at[i] = take(pool, 32 * MIB);
    put(at[0]);
    put(at[2]);
    more = take(pool, 64 * MIB);
    assert_int_equal(fixture_reserved(pool), 128);
    put(more);
    put(at[1]);
    put(at[3]);
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(fixture_took(), 0);
}

static void test_freed_memory_is_reused_at_once(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, 0);
    CUdeviceptr at = take(pool, 10 * MIB), again;

    (void)state;
    put(at);
    again = take(pool, 10 * MIB);
    assert_int_equal(again, at);
    put(again);
    for (unsigned i = 0; i < 1000; i++)
        put(take(pool, 10 * MIB));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_ok(cuMemPoolDestroy(pool));
    fixture_took();
}

static void test_any_way_of_waiting_for_the_free_gives_back(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, 0);
    CUstream other;
    CUevent event;

    (void)state;
    assert_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    assert_ok(cuEventCreate(&event, 0));
    put(take(pool, 1));
    assert_ok(cuStreamSynchronize(other));
    assert_ok(cuStreamSynchronize(NULL)); /* does not wait for non-blocking streams */
    assert_ok(cuStreamQuery(stream));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_ok(cuEventRecord(event, stream));
    assert_ok(cuEventQuery(event));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_ok(cuEventSynchronize(event));
    assert_int_equal(fixture_reserved(pool), 0);
    put(take(pool, 1));
    assert_ok(cuCtxSynchronize());
    assert_int_equal(fixture_reserved(pool), 0);
    CUdeviceptr at = take(pool, 1);
    assert_ok(cuMemFreeAsync(at, other)); /* where it was freed counts */
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_ok(cuStreamDestroy_v2(other));
    assert_int_equal(fixture_reserved(pool), 0);
    assert_ok(cuMemAllocFromPoolAsync(&at, 1, pool, NULL));
    assert_ok(cuMemFreeAsync_ptsz(at, NULL));
    assert_ok(cuStreamSynchronize(NULL)); /* the per-thread stream is a blocking one */
    assert_int_equal(fixture_reserved(pool), 0);
    assert_ok(cuEventDestroy_v2(event));
    assert_ok(cuMemPoolDestroy(pool));
    fixture_took();
}

static void test_both_kinds_of_free_take_both_kinds_of_pointer(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUdeviceptr at = take(pool, 10 * MIB);

    (void)state;
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), 32); /* the pool keeps the chunk until it is trimmed */
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(take(pool, 10 * MIB), at);
    put(at);
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(fixture_took(), -32);
    assert_ok(cuMemPoolDestroy(pool));

    assert_ok(cuMemAlloc_v2(&at, 100));
    assert_int_equal(fixture_took(), 2);
    assert_ok(cuMemFreeAsync(at, stream));
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0); /* in stream order, so not before the stream is idle */
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_took(), -2);
}

static void test_a_destroyed_pool_goes_when_its_last_free_is_over(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUdeviceptr at = take(pool, 10 * MIB);

    (void)state;
    fixture_took();
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    put(at);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(fixture_took(), -32);
    pool = fixture_create_pool(0, UINT64_MAX);
    at = take(pool, 10 * MIB);
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemFree_v2(at)); /* waits by itself */
    assert_int_equal(fixture_took(), 0);
}

static void test_the_maximum_size_is_kept(void **state)
{
    CUmemoryPool pool = fixture_create_pool(64 * MIB, 0);
    CUdeviceptr at, more = 7;

    (void)state;
    assert_int_equal(cuMemAllocFromPoolAsync(&more, 100 * MIB, pool, stream),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(more, 0);
    at = take(pool, 64 * MIB);
    assert_int_equal(cuMemAllocFromPoolAsync(&more, 1, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
    put(at);
    assert_ok(cuMemPoolDestroy(pool));
    fixture_took();
}

static void test_the_current_pool_serves_plain_requests(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, 0), standard, now;
    CUdeviceptr at;

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&standard, 0));
    assert_ok(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, standard);
    assert_ok(cuDeviceSetMemPool(0, pool));
    assert_ok(cuMemAllocAsync(&at, 100, stream));
    assert_int_equal(fixture_reserved(pool), 32);
    assert_int_equal(fixture_reserved(standard), 0);
    assert_ok(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at));
    assert_ptr_equal(now, pool);
    put(at);
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, standard);
    assert_int_equal(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    fixture_took();
}

static void test_a_full_device_takes_back_what_pools_keep_idle(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX), other = fixture_create_pool(0, 0);
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    (void)state;
    put(take(pool, 6144 * MIB));
    assert_ok(cuMemAlloc_v2(&at, 4096 * MIB));
    assert_int_equal(fixture_reserved(pool), 0);
    assert_ok(cuMemFree_v2(at));
    put(take(pool, 6144 * MIB));
    assert_ok(cuMemCreate(&handle, 4096 * MIB, &prop, 0));
    assert_int_equal(fixture_reserved(pool), 0);
    assert_ok(cuMemRelease(handle));
    put(take(pool, 6144 * MIB));
    put(take(other, 4096 * MIB));
    assert_int_equal(fixture_reserved(pool), 0);
    assert_ok(cuMemPoolDestroy(other));
    put(take(pool, 6144 * MIB));
    put(take(pool, 6176 * MIB)); /* its own too: chunks are counted afresh */
    assert_int_equal(fixture_reserved(pool), 6176);
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(fixture_took(), 0);
}

static void test_host_pools_take_no_device_memory(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}};
    CUmemoryPool pool;

    (void)state;
    assert_ok(cuMemPoolCreate(&pool, &props));
    CUdeviceptr at = take(pool, 10 * MIB);
    assert_int_equal(fixture_reserved(pool), 32);
    assert_int_equal(fixture_took(), 0);
    put(at);
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_bad_arguments_answer_1_and_size_0_is_legal(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool untouched = (CUmemoryPool)&props, standard;
    CUdeviceptr at = 7;
    cuuint64_t value = 1;

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&standard, 0));
    assert_ok(cuMemAllocAsync(&at, 0, stream));
    assert_int_equal(at, 0);
    at = 7;
    assert_int_equal(cuMemAllocAsync(&at, 64 * TIB, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(at, 0);
    assert_int_equal(cuMemAllocAsync(NULL, 100, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemAllocFromPoolAsync(&at, 100, NULL, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFreeAsync(0x1234, stream), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeAsync(0, stream));
    assert_int_equal(cuMemPoolCreate(&untouched, &props), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(untouched, &props);
    assert_int_equal(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
                     CUDA_ERROR_INVALID_VALUE);
    value = 0;
    assert_ok(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pool_reserves_chunks_of_32_mib),
        cmocka_unit_test(test_the_threshold_keeps_what_synchronising_would_give_back),
        cmocka_unit_test(test_trimming_stays_above_and_the_threshold_goes_below),
        cmocka_unit_test(test_a_fragmented_pool_grows),
        cmocka_unit_test(test_idle_chunks_move_to_where_they_are_needed),
        cmocka_unit_test(test_freed_memory_is_reused_at_once),
        cmocka_unit_test(test_any_way_of_waiting_for_the_free_gives_back),
        cmocka_unit_test(test_both_kinds_of_free_take_both_kinds_of_pointer),
        cmocka_unit_test(test_a_destroyed_pool_goes_when_its_last_free_is_over),
        cmocka_unit_test(test_the_maximum_size_is_kept),
        cmocka_unit_test(test_the_current_pool_serves_plain_requests),
        cmocka_unit_test(test_a_full_device_takes_back_what_pools_keep_idle),
        cmocka_unit_test(test_host_pools_take_no_device_memory),
        cmocka_unit_test(test_bad_arguments_answer_1_and_size_0_is_legal),
    };

    return cmocka_run_group_tests(tests, pools_set_up, NULL);
}
