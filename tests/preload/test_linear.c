/* SPDX-License-Identifier: MIT
 *
 * entry_linear.c: linear, pitched and managed memory.
 */
#include "preload.h"

#include <stdlib.h>

static void test_the_charge_is_what_the_device_gives(void **state)
{
    enum { PIECES = 200 };
    static const size_t sizes[] = {1,          512,         4096,       65536,          MIB(1),
                                   MIB(1) + 1, MIB(2),      MIB(2) + 1, MIB(3),         MIB(16),
                                   700 * 1024, 1536 * 1024, 100 * 1024, MIB(5) + 12345, 2000000};
    CUdeviceptr pieces[PIECES] = {0};
    (void)state;
    srandom(1);
    for (unsigned step = 0; step < 5000; step++) {
        CUdeviceptr *piece = &pieces[random() % PIECES];
        if (*piece) {
            assert_ok(cuMemFree_v2(*piece));
            *piece = 0;
        } else if (cuMemAlloc_v2(piece,
                                 sizes[(size_t)random() % (sizeof sizes / sizeof sizes[0])]) !=
                   CUDA_SUCCESS) {
            assert_int_equal(*piece, 0);
        }
        assert_int_equal(atomic_load(&preload_device()->charged_bytes), preload_device_bytes());
        assert_int_equal(MIB(1024) - preload_free(), preload_device_bytes());
    }
    for (unsigned i = 0; i < PIECES; i++)
        assert_ok(cuMemFree_v2(pieces[i]));
}

static void test_a_refusal_is_not_sticky(void **state)
{
    CUdeviceptr large, small;
    (void)state;
    assert_ok(cuMemAlloc_v2(&large, MIB(1000)));
    assert_int_equal(cuMemAlloc_v2(&small, MIB(100)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(large));
    assert_ok(cuMemAlloc_v2(&small, MIB(100)));
    assert_ok(cuMemFree_v2(small));
}

static void test_the_last_block_serves_small_requests_to_its_end(void **state)
{
    static CUdeviceptr pieces[5000];
    CUdeviceptr large;
    unsigned got = 0;
    (void)state;
    assert_ok(cuMemAlloc_v2(&large, MIB(1022)));
    while (cuMemAlloc_v2(&pieces[got], 512) == CUDA_SUCCESS)
        got++;
    assert_int_equal(got, 4096); /* 2 MiB of 512 bytes */
    assert_int_equal(preload_device_bytes(), MIB(1024));
    while (got > 0)
        assert_ok(cuMemFree_v2(pieces[--got]));
    assert_ok(cuMemFree_v2(large));
}

static void test_pitched_memory_is_charged_by_its_pitch(void **state)
{
    CUdeviceptr pitched;
    size_t pitch;
    (void)state;
    assert_ok(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 5000, 4));
    assert_int_equal(preload_device_bytes(), MIB(6));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(6));
    assert_int_equal(atomic_load(&preload_device()->requested_bytes), pitch * 5000);
    assert_ok(cuMemFree_v2(pitched));
    pitched = 1;
    pitch = 0;
    assert_int_equal(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 1 << 21, 4),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pitched, 0);
    assert_int_equal(pitch, 1024);
    assert_int_equal(cuMemAllocPitch_v2(&pitched, &pitch, SIZE_MAX, SIZE_MAX, 4),
                     CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_managed_memory_is_charged_whole_though_the_device_gives_none_yet(void **state)
{
    CUdeviceptr managed, more;
    (void)state;
    assert_ok(cuMemAllocManaged(&managed, MIB(1000), CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(preload_device_bytes(), 0);
    assert_int_equal(preload_free(), MIB(24));
    assert_int_equal(atomic_load(&preload_device()->by_kind[GPULIMIT_KIND_MANAGED].bytes),
                     MIB(1000));
    assert_int_equal(cuMemAllocManaged(&more, MIB(25), CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&more, MIB(25)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(managed));
}

static void test_failed_frees_change_nothing(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAlloc_v2(&piece, MIB(10)));
    assert_int_equal(cuMemFree_v2(piece + 512), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(0));
    simgpu_fail_next("cuMemFree_v2", CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemFree_v2(piece), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(preload_free(), MIB(1014));
    assert_ok(cuMemFree_v2(piece));
    assert_int_equal(cuMemFree_v2(piece), CUDA_ERROR_INVALID_VALUE);
}

static void test_sizes_near_2_to_the_64_are_refused(void **state)
{
    CUdeviceptr piece;
    (void)state;
    assert_int_equal(cuMemAlloc_v2(&piece, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&piece, SIZE_MAX - MIB(2)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAllocManaged(&piece, SIZE_MAX, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_memory_of_cuda_2_counts_as_any_other(void **state)
{
    CUdeviceptr_v1 piece;
    unsigned int pitch;
    (void)state;
    assert_ok(cuMemAlloc(&piece, 100 << 20));
    assert_int_equal(preload_free(), MIB(924));
    assert_ok(cuMemFree(piece));
    assert_ok(cuMemAllocPitch(&piece, &pitch, 1000, 5000, 4));
    assert_int_equal(preload_free(), MIB(1018));
    assert_ok(cuMemFree(piece));
}

static void test_host_memory_is_free(void **state)
{
    void *host;
    (void)state;
    assert_ok(cuMemHostAlloc(&host, MIB(64), 0));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuMemFreeHost(host));
}

static void test_refusals_and_recoveries_are_counted(void **state)
{
    CUdeviceptr piece;
    uint64_t denials = atomic_load(&preload_device()->denials);
    (void)state;
    assert_int_equal(cuMemAlloc_v2(&piece, MIB(2000)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(atomic_load(&preload_device()->denials), denials + 1);
    uint64_t recovered = atomic_load(&preload_device()->denials_recovered);
    assert_ok(cuMemAlloc_v2(&piece, MIB(500)));
    assert_int_equal(atomic_load(&preload_device()->denials_recovered), recovered);
    assert_ok(cuMemFree_v2(piece));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_the_charge_is_what_the_device_gives),
        CLEAN(test_a_refusal_is_not_sticky),
        CLEAN(test_the_last_block_serves_small_requests_to_its_end),
        CLEAN(test_pitched_memory_is_charged_by_its_pitch),
        CLEAN(test_managed_memory_is_charged_whole_though_the_device_gives_none_yet),
        CLEAN(test_failed_frees_change_nothing),
        CLEAN(test_sizes_near_2_to_the_64_are_refused),
        CLEAN(test_memory_of_cuda_2_counts_as_any_other),
        CLEAN(test_host_memory_is_free),
        CLEAN(test_refusals_and_recoveries_are_counted),
    };
    return cmocka_run_group_tests_name("linear", tests, preload_set_up, NULL);
}
