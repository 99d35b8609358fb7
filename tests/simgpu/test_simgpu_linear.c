// SPDX-License-Identifier: MIT
//
// Linear, managed and host memory of the simulated GPU: what they take, what calls answer, what
// outputs say.

#include "fixture.h"

#include <stdlib.h>

static void test_small_requests_share_a_block_of_2_mib(void **state)
{
    static const size_t sizes[] = {1, 512, 513, 65536, 1 << 20};
    CUdeviceptr at[5], rest;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_ok(cuMemAlloc_v2(&at[i], sizes[i]));
    assert_int_equal(fixture_took(), 2);
    assert_int_equal(at[1] - at[0], 512);
    assert_int_equal(at[2] - at[1], 512);
    assert_int_equal(at[3] - at[2], 1024);

    assert_ok(cuMemAlloc_v2(&rest, (1 << 20) + 1)); /* does not fit the block's rest */
    assert_int_equal(fixture_took(), 2);
    assert_ok(cuMemFree_v2(rest));
    for (unsigned i = 0; i < 4; i++)
        assert_ok(cuMemFree_v2(at[i]));
    assert_int_equal(fixture_took(), -2);
    assert_ok(cuMemFree_v2(at[4])); /* the last piece takes the block along */
    assert_int_equal(fixture_took(), -2);
}

static void test_large_requests_are_rounded_up_to_2_mib(void **state)
{
    static const struct {
        size_t bytes;
        int64_t took;
    } rows[] = {{2 << 20, 2}, {(2 << 20) + 1, 4}, {3 << 20, 4}, {20 << 20, 20}, {1 << 30, 1024}};
    CUdeviceptr at;

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_ok(cuMemAlloc_v2(&at, rows[i].bytes));
        assert_int_equal(fixture_took(), rows[i].took);
        assert_int_equal(at % (2 * MIB), 0);
        assert_ok(cuMemFree_v2(at));
        assert_int_equal(fixture_took(), -rows[i].took);
    }
}

static void test_many_of_a_size_are_packed_first_fit(void **state)
{
    static const struct {
        unsigned count;
        size_t bytes;
        int64_t took;
    } rows[] = {{1000, 4096, 4}, {20, 1 << 20, 20}, {20, 700 << 10, 20}, {10, 3 << 19, 20}};
    static CUdeviceptr at[1000];

    (void)state;
    for (unsigned row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        for (unsigned i = 0; i < rows[row].count; i++)
            assert_ok(cuMemAlloc_v2(&at[i], rows[row].bytes));
        assert_int_equal(fixture_took(), rows[row].took);
        for (unsigned i = 0; i < rows[row].count; i++)
            assert_ok(cuMemFree_v2(at[i]));
        assert_int_equal(fixture_took(), -rows[row].took);
    }
}

static void test_a_freed_address_is_handed_out_next(void **state)
{
    CUdeviceptr first, second, again;

    (void)state;
    assert_ok(cuMemAlloc_v2(&first, 4096));
    assert_ok(cuMemAlloc_v2(&second, 4096));
    assert_ok(cuMemFree_v2(first));
    assert_ok(cuMemAlloc_v2(&again, 100));
    assert_int_equal(again, first);
    assert_ok(cuMemFree_v2(again));
    assert_ok(cuMemFree_v2(second));
    fixture_took();
}

/* The block rule, against a count made from the addresses alone. */
static void test_what_is_taken_is_the_number_of_blocks_touched(void **state)
{
    enum { LIVE = 200, BLOCKS = 1 << 14 };
    static CUdeviceptr at[LIVE];
    static size_t sizes[LIVE];
    static unsigned touched[BLOCKS];
    uint64_t before = simgpu_process_used(0), base = 0;

    (void)state;
    srand(1);
    for (unsigned step = 0; step < 4000; step++) {
        unsigned i = (unsigned)rand() % LIVE, blocks = 0;
        int change = at[i] ? -1 : 1;
        CUdeviceptr freed = at[i];

        if (!at[i]) {
            sizes[i] = 1 + (size_t)rand() % (rand() % 4 ? 100000 : 5 << 20);
            assert_ok(cuMemAlloc_v2(&at[i], sizes[i]));
            base = base ? base : at[i] >> 21;
        }
        for (uint64_t b = at[i] >> 21; b <= (at[i] + sizes[i] - 1) >> 21; b++)
            touched[(b - base) % BLOCKS] += (unsigned)change;
        if (freed) {
            assert_ok(cuMemFree_v2(freed));
            at[i] = 0;
        }
        if (step % 50)
            continue;
        for (unsigned b = 0; b < BLOCKS; b++)
            blocks += touched[b] != 0;
        assert_int_equal(simgpu_process_used(0) - before, blocks * 2 * MIB);
    }
    for (unsigned i = 0; i < LIVE; i++)
        assert_ok(cuMemFree_v2(at[i]));
    assert_int_equal(simgpu_process_used(0), before);
}

static void test_pitch_is_a_multiple_of_512(void **state)
{
    CUdeviceptr at;
    size_t pitch;

    (void)state;
    fixture_took();
    assert_ok(cuMemAllocPitch_v2(&at, &pitch, 1000, 5000, 4));
    assert_int_equal(pitch, 1024);
    assert_int_equal(fixture_took(), 6);
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), -6);
}

static void test_a_failed_allocation_sets_its_output_to_0(void **state)
{
    CUdeviceptr at = 7;
    size_t pitch = 7;

    (void)state;
    assert_int_equal(cuMemAlloc_v2(&at, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(at, 0);
    at = 7;
    assert_int_equal(cuMemAlloc_v2(&at, 64 * TIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(at, 0);
    assert_int_equal(cuMemAlloc_v2(&at, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(NULL, 100), CUDA_ERROR_INVALID_VALUE);

    at = 7;
    assert_int_equal(cuMemAllocPitch_v2(&at, &pitch, 1000, TIB, 4), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(at, 0);
    assert_int_equal(pitch, 1024); /* pitch still gets its pitch */
    assert_int_equal(cuMemAllocPitch_v2(&at, &pitch, 0, 5, 4), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(pitch, 0);
    assert_int_equal(cuMemAllocPitch_v2(&at, &pitch, 100, 100, 3), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemAllocPitch_v2(&at, &pitch, (size_t)1 << 62, 8, 4),
                     CUDA_ERROR_INVALID_VALUE);

    at = 7;
    assert_int_equal(cuMemAllocManaged(&at, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(at, 0);
    assert_int_equal(cuMemAllocManaged(&at, 100, 3), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0);
}

static void test_freeing_what_is_not_an_allocation_answers_1(void **state)
{
    CUdeviceptr at;

    (void)state;
    assert_ok(cuMemFree_v2(0));
    assert_int_equal(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAlloc_v2(&at, 1000));
    assert_int_equal(cuMemFree_v2(at + 8), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    fixture_took();
}

static void test_managed_memory_of_64_tib_costs_nothing(void **state)
{
    CUdeviceptr at;
    unsigned managed = 0;

    (void)state;
    assert_ok(cuMemAllocManaged(&at, 64 * TIB, CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    assert_int_equal(managed, 1);
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(cuMemAllocManaged(&at, 128 * TIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_host_memory_is_not_device_memory(void **state)
{
    void *at, *other;

    (void)state;
    assert_ok(cuMemHostAlloc(&at, 100 * MIB, 0));
    assert_ok(cuMemAllocHost_v2(&other, 100));
    *(char *)at = *(char *)other = 1;
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuMemFree_v2((CUdeviceptr)at), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFreeHost(&at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeHost(at));
    assert_ok(cuMemFreeHost(other));
    assert_ok(cuMemFreeHost(NULL));
    assert_ok(cuMemHostAlloc(&at, 0, 0));
}

static void test_the_whole_device_can_be_taken_and_no_more(void **state)
{
    CUdeviceptr at, more;
    size_t left, total;

    (void)state;
    assert_ok(cuMemGetInfo_v2(&left, &total));
    assert_int_equal(total, 8192 * MIB);
    assert_int_equal(left, (8192 - 64) * MIB);
    assert_int_equal(cuMemAlloc_v2(&at, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemAlloc_v2(&at, left));
    assert_int_equal(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemGetInfo_v2(&left, NULL));
    assert_int_equal(left, 0);
    assert_ok(cuMemFree_v2(at)); /* and the error was not sticky */
    assert_ok(cuMemAlloc_v2(&more, 1));
    assert_ok(cuMemFree_v2(more));
    fixture_took();
}

static void test_the_2_x_interface_hands_out_32_bit_addresses(void **state)
{
    CUdeviceptr_v1 small, large, base;
    unsigned pitch, bytes, left, total;

    (void)state;
    assert_ok(cuMemAlloc(&small, 100));
    assert_ok(cuMemAllocPitch(&large, &pitch, 1000, 5000, 4));
    assert_true(small && large && small != large);
    assert_int_equal(pitch, 1024);
    assert_int_equal(fixture_took(), 8);
    assert_ok(cuMemGetAddressRange(&base, &bytes, small + 99));
    assert_int_equal(base, small);
    assert_int_equal(bytes, 100);
    assert_ok(cuMemGetInfo(&left, &total));
    assert_int_equal(total, UINT32_MAX);
    assert_ok(cuDeviceTotalMem(&total, 0));
    assert_int_equal(total, UINT32_MAX);
    assert_ok(cuMemFree(small));
    assert_ok(cuMemFree_v2(large));
    assert_int_equal(fixture_took(), -8);
}

static void test_address_ranges_and_attributes_are_those_asked_for(void **state)
{
    CUdeviceptr at, base;
    CUcontext context, current;
    size_t bytes;
    unsigned type;
    int ordinal = -1;

    (void)state;
    assert_ok(cuMemAlloc_v2(&at, 1000));
    assert_ok(cuMemGetAddressRange_v2(&base, &bytes, at + 999));
    assert_int_equal(base, at);
    assert_int_equal(bytes, 1000);
    assert_int_equal(cuMemGetAddressRange_v2(&base, &bytes, 0x1234), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(base, 0);
    assert_int_equal(bytes, 0);
    assert_ok(cuMemGetAddressRange_v2(NULL, NULL, at));
    assert_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
    assert_int_equal(ordinal, 0);
    assert_ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at));
    assert_ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(context, current);
    assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(at));
}

static void test_copies_check_their_ranges(void **state)
{
    CUdeviceptr at;
    char bytes[20] = "not zero";

    (void)state;
    assert_ok(cuMemAlloc_v2(&at, 1000));
    assert_ok(cuMemcpyHtoD_v2(at + 980, bytes, 20));
    assert_int_equal(cuMemcpyHtoD_v2(at + 990, bytes, 20), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemcpyHtoD_v2(0, bytes, 10), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemcpyHtoD_v2(at, bytes, 0));
    assert_ok(cuMemcpyDtoH_v2(bytes, at, 20));
    assert_int_equal(bytes[0], 0);
    assert_ok(cuMemcpyDtoD_v2(at, at + 500, 100));
    assert_int_equal(cuMemcpyDtoD_v2(at, at + 950, 100), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemsetD8_v2(at, 1, 1000));
    assert_int_equal(cuMemsetD8_v2(at, 1, 1001), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_requests_share_a_block_of_2_mib),
        cmocka_unit_test(test_large_requests_are_rounded_up_to_2_mib),
        cmocka_unit_test(test_many_of_a_size_are_packed_first_fit),
        cmocka_unit_test(test_a_freed_address_is_handed_out_next),
        cmocka_unit_test(test_what_is_taken_is_the_number_of_blocks_touched),
        cmocka_unit_test(test_pitch_is_a_multiple_of_512),
        cmocka_unit_test(test_a_failed_allocation_sets_its_output_to_0),
        cmocka_unit_test(test_freeing_what_is_not_an_allocation_answers_1),
        cmocka_unit_test(test_managed_memory_of_64_tib_costs_nothing),
        cmocka_unit_test(test_host_memory_is_not_device_memory),
        cmocka_unit_test(test_the_whole_device_can_be_taken_and_no_more),
        cmocka_unit_test(test_the_2_x_interface_hands_out_32_bit_addresses),
        cmocka_unit_test(test_address_ranges_and_attributes_are_those_asked_for),
        cmocka_unit_test(test_copies_check_their_ranges),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
