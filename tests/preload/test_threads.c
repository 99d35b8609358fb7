/* SPDX-License-Identifier: MIT
 *
 * Many threads at the limit: never one too many, never one too few, and nothing left at the end.
 */
#include "preload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 8 };

static CUcontext context;

static int set_up(void **state)
{
    return preload_set_up(state) || cuCtxGetCurrent(&context);
}

static void run_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static CUdeviceptr pieces[THREADS];
static CUmemGenericAllocationHandle handles[THREADS];

static void *take_linear(void *number)
{
    cuCtxSetCurrent(context);
    if (cuMemAlloc_v2(&pieces[(uintptr_t)number], MIB(100)) != CUDA_SUCCESS)
        pieces[(uintptr_t)number] = 0;
    return NULL;
}

static void *take_async(void *number)
{
    cuCtxSetCurrent(context);
    if (cuMemAllocAsync(&pieces[(uintptr_t)number], MIB(96), NULL) != CUDA_SUCCESS)
        pieces[(uintptr_t)number] = 0;
    return NULL;
}

static void *take_handle(void *number)
{
    CUmemAllocationProp prop = preload_device_prop();
    if (cuMemCreate(&handles[(uintptr_t)number], MIB(100), &prop, 0) != CUDA_SUCCESS)
        handles[(uintptr_t)number] = 0;
    return NULL;
}

/* Counts what the threads got, and gives it back. */
static unsigned give_back(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        if (pieces[i])
            assert_ok(cuMemFree_v2(pieces[i]));
        if (handles[i])
            assert_ok(cuMemRelease(handles[i]));
        count += pieces[i] || handles[i];
        pieces[i] = 0;
        handles[i] = 0;
    }
    return count;
}

static void test_of_8_threads_exactly_2_get_100_mib_of_250(void **state)
{
    CUdeviceptr ballast;
    CUmemoryPool pool;
    (void)state;
    assert_ok(cuMemAlloc_v2(&ballast, MIB(774)));
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    for (unsigned round = 0; round < 30; round++) {
        run_threads(take_linear);
        assert_int_equal(give_back(), 2);
        run_threads(take_handle);
        assert_int_equal(give_back(), 2);
        run_threads(take_async);
        assert_int_equal(give_back(), 2);
        assert_ok(cuMemPoolTrimTo(pool, 0));
    }
    assert_ok(cuMemFree_v2(ballast));
}

static atomic_uint refusals;

static void *storm(void *number)
{
    enum { LIVE = 16, STEPS = 3000 };
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    CUdeviceptr live[LIVE] = {0};
    cuCtxSetCurrent(context);
    for (unsigned step = 0; step < STEPS; step++) {
        CUdeviceptr *piece = &live[(unsigned)rand_r(&seed) % LIVE];
        size_t bytes = 1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 4096 : MIB(30));
        CUresult result = CUDA_SUCCESS;
        if (*piece) {
            result = rand_r(&seed) % 2 ? cuMemFree_v2(*piece) : cuMemFreeAsync(*piece, NULL);
            *piece = 0;
        } else {
            result = rand_r(&seed) % 2 ? cuMemAlloc_v2(piece, bytes)
                                       : cuMemAllocAsync(piece, bytes, NULL);
            atomic_fetch_add(&refusals, result == CUDA_ERROR_OUT_OF_MEMORY);
        }
        /* One chunk over, at most and for as long as one call takes: a request that was to fit into
         * a hole of the pool, which another thread's had filled just then. */
        if ((result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) ||
            preload_device_bytes() > MIB(1024 + 32))
            abort();
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (live[i])
            cuMemFree_v2(live[i]);
    }
    return NULL;
}

static void test_a_storm_stays_within_the_limit_and_ends_at_zero(void **state)
{
    CUmemoryPool pool;
    (void)state;
    preload_peak_bytes = MIB(1024 + 32); /* see storm */
    atomic_store(&refusals, 0);
    run_threads(storm);
    assert_true(atomic_load(&refusals) > 0);
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuMemPoolTrimTo(pool, 0));
}

static void *create_and_destroy_pools(void *number)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    cuCtxSetCurrent(context);
    for (unsigned i = 0; i < 300; i++) {
        CUdeviceptr piece = 0;
        CUmemoryPool pool;
        size_t free, total;
        if ((uintptr_t)number % 2) {
            cuMemGetInfo_v2(&free, &total); /* asks about every pool */
            continue;
        }
        if (cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS)
            abort();
        if (cuMemAllocFromPoolAsync(&piece, MIB(200), pool, NULL) == CUDA_SUCCESS)
            cuMemFreeAsync(piece, NULL);
        cuStreamSynchronize(NULL);
        if (cuMemPoolDestroy(pool) != CUDA_SUCCESS)
            abort();
    }
    return NULL;
}

static void test_pools_come_and_go_while_others_ask_about_them(void **state)
{
    (void)state;
    run_threads(create_and_destroy_pools);
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_of_8_threads_exactly_2_get_100_mib_of_250),
        CLEAN(test_a_storm_stays_within_the_limit_and_ends_at_zero),
        CLEAN(test_pools_come_and_go_while_others_ask_about_them),
    };
    return cmocka_run_group_tests_name("threads", tests, set_up, NULL);
}
