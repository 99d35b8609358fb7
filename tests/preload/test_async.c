/* SPDX-License-Identifier: MIT
 *
 * entry_async.c: stream-ordered memory, charged by the reserve of its pool.
 */
#include "preload.h"

#include <stdlib.h>

static CUstream stream;
static CUmemoryPool pool; /* the device's default one */

static int set_up(void **state)
{
    return preload_set_up(state) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
           cuDeviceGetDefaultMemPool(&pool, 0);
}

static void keep_reserve(bool keeps)
{
    cuuint64_t threshold = keeps ? UINT64_MAX : 0;
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static int clean_up(void **state)
{
    keep_reserve(false);
    assert_ok(cuStreamSynchronize(stream));
    assert_ok(cuMemPoolTrimTo(pool, 0));
    return preload_assert_clean(state);
}

static void test_a_byte_costs_the_chunk_that_the_pool_reserves(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAllocAsync(&piece, 1, stream));
    assert_int_equal(preload_device_bytes(), MIB(32));
    assert_int_equal(preload_free(), MIB(992));
    assert_int_equal(atomic_load(&preload_device()->requested_bytes), 1);
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(preload_free(), MIB(1024)); /* the pool gave back; nobody told us, we ask */
}

static void test_over_the_limit_is_refused_and_the_pool_stays_usable(void **state)
{
    CUdeviceptr piece, more = 1;
    (void)state;
    assert_ok(cuMemAllocAsync(&piece, MIB(900), stream));
    assert_int_equal(cuMemAllocAsync(&more, MIB(200), stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(more, 0);
    assert_int_equal(preload_device_bytes(), MIB(928));
    assert_ok(cuMemAllocAsync(&more, MIB(90), stream));
    assert_ok(cuMemFreeAsync(more, stream));
    assert_ok(cuMemFreeAsync(piece, stream));
}

static void test_idle_reserve_is_given_back_before_a_refusal(void **state)
{
    CUdeviceptr piece, linear;
    (void)state;
    keep_reserve(true);
    assert_ok(cuMemAllocAsync(&piece, MIB(900), stream));
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(preload_device_bytes(), MIB(928));
    assert_ok(cuMemAlloc_v2(&linear, MIB(1000)));
    assert_int_equal(preload_device_bytes(), MIB(1000));
    assert_ok(cuMemFree_v2(linear));
}

static void test_sixty_percent_freed_and_taken_again_on_another_stream(void **state)
{
    CUdeviceptr piece;
    CUstream other;
    (void)state;
    keep_reserve(true);
    assert_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    assert_ok(cuMemAllocAsync(&piece, MIB(600), stream));
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_ok(cuMemAllocAsync(&piece, MIB(600), other));
    assert_ok(cuMemFreeAsync(piece, other));
    assert_ok(cuStreamDestroy_v2(other));
}

static void test_a_thousand_rounds_near_the_limit_go_on_for_ever(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        CUdeviceptr pieces[3];
        for (unsigned j = 0; j < 3; j++)
            assert_ok(cuMemAllocAsync(&pieces[j], MIB(330), stream));
        for (unsigned j = 0; j < 3; j++)
            assert_ok(cuMemFreeAsync(pieces[j], stream));
    }
}

static void test_sync_and_async_frees_are_interchangeable(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAlloc_v2(&piece, MIB(100)));
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
    assert_ok(cuMemAllocAsync(&piece, MIB(100), stream));
    assert_ok(cuMemFree_v2(piece));
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
}

static void
test_linear_memory_freed_in_stream_order_counts_until_the_stream_is_synchronised(void **state)
{
    CUdeviceptr piece, more;
    CUstream other;
    (void)state;
    assert_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    assert_ok(cuMemAlloc_v2(&piece, MIB(600)));
    assert_ok(cuMemFreeAsync(piece, stream));
    assert_ok(cuStreamSynchronize(other));
    assert_int_equal(preload_device_bytes(), MIB(600));
    assert_int_equal(preload_free(), MIB(424));
    assert_int_equal(cuMemAlloc_v2(&more, MIB(600)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), 0);
    assert_ok(cuMemAlloc_v2(&more, MIB(600)));
    assert_ok(cuMemFreeAsync(more, stream));
    assert_ok(cuCtxSynchronize());
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), 0);
    assert_ok(cuStreamDestroy_v2(other));
}

static void test_the_ledger_follows_a_synchronisation_by_itself(void **state)
{
    CUdeviceptr piece;
    CUevent event;
    (void)state;
    assert_ok(cuEventCreate(&event, 0));
    for (unsigned how = 0; how < 3; how++) {
        assert_ok(cuMemAllocAsync(&piece, MIB(100), stream));
        assert_ok(cuMemFreeAsync(piece, stream));
        assert_ok(cuEventRecord(event, stream));
        assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(128));
        assert_ok(how == 0   ? cuStreamSynchronize(stream)
                  : how == 1 ? cuEventSynchronize(event)
                             : cuCtxSynchronize());
        assert_int_equal(preload_device_bytes(), 0);
        assert_int_equal(atomic_load(&preload_device()->charged_bytes), 0);
    }
}

static void test_a_per_thread_stream_counts_alike(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAllocAsync_ptsz(&piece, MIB(100), NULL));
    assert_int_equal(preload_free(), MIB(896));
    assert_ok(cuMemFreeAsync_ptsz(piece, NULL));
    assert_ok(cuMemAllocFromPoolAsync_ptsz(&piece, MIB(100), pool, NULL));
    assert_ok(cuMemFreeAsync_ptsz(piece, NULL));
}

static void test_unknown_pointers_go_to_the_driver(void **state)
{
    uint64_t calls = simgpu_calls("cuMemFreeAsync");
    (void)state;
    assert_int_equal(cuMemFreeAsync(0x1234, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(simgpu_calls("cuMemFreeAsync"), calls + 1);
}

static void test_nothing_of_a_request_of_zero_is_counted(void **state)
{
    CUdeviceptr piece = 1;
    (void)state;
    assert_ok(cuMemAllocAsync(&piece, 0, stream));
    assert_int_equal(piece, 0);
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
}

static void test_the_device_never_holds_more_than_the_limit_in_a_random_run(void **state)
{
    enum { PIECES = 60 };
    CUdeviceptr pieces[PIECES] = {0};
    unsigned refused = 0;
    (void)state;
    srandom(2);
    keep_reserve(true);
    for (unsigned step = 0; step < 6000; step++) {
        CUdeviceptr *piece = &pieces[random() % PIECES];
        size_t bytes = 1 + (size_t)random() % (random() % 4 ? MIB(4) : MIB(120));
        if (*piece) {
            assert_ok(random() % 8 ? cuMemFreeAsync(*piece, stream) : cuMemFree_v2(*piece));
            *piece = 0;
        } else {
            CUresult result = random() % 2 ? cuMemAllocAsync(piece, bytes, stream)
                                           : cuMemAllocFromPoolAsync(piece, bytes, pool, stream);
            refused += result == CUDA_ERROR_OUT_OF_MEMORY;
            assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        }
        assert_true(preload_device_bytes() <= MIB(1024));
        if (random() % 100 == 0)
            assert_ok(cuStreamSynchronize(stream));
    }
    assert_true(refused > 0);
    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i])
            assert_ok(cuMemFreeAsync(pieces[i], stream));
    }
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_a_byte_costs_the_chunk_that_the_pool_reserves),
        CLEAN(test_over_the_limit_is_refused_and_the_pool_stays_usable),
        CLEAN(test_idle_reserve_is_given_back_before_a_refusal),
        CLEAN(test_sixty_percent_freed_and_taken_again_on_another_stream),
        CLEAN(test_a_thousand_rounds_near_the_limit_go_on_for_ever),
        CLEAN(test_sync_and_async_frees_are_interchangeable),
        CLEAN(test_linear_memory_freed_in_stream_order_counts_until_the_stream_is_synchronised),
        CLEAN(test_the_ledger_follows_a_synchronisation_by_itself),
        CLEAN(test_a_per_thread_stream_counts_alike),
        CLEAN(test_unknown_pointers_go_to_the_driver),
        CLEAN(test_nothing_of_a_request_of_zero_is_counted),
        CLEAN(test_the_device_never_holds_more_than_the_limit_in_a_random_run),
    };
    return cmocka_run_group_tests_name("async", tests, set_up, NULL);
}
