/* SPDX-License-Identifier: MIT
 *
 * entry_query.c: how much memory the program believes there is.
 */
#include "preload.h"

static void test_the_device_looks_as_large_as_the_limit(void **state)
{
    size_t free, total;
    (void)state;
    assert_ok(cuMemGetInfo_v2(&free, &total));
    assert_int_equal(free, MIB(1024));
    assert_int_equal(total, MIB(1024));
    assert_ok(cuDeviceTotalMem_v2(&total, 0));
    assert_int_equal(total, MIB(1024));
}

static void test_the_figures_of_cuda_2_agree(void **state)
{
    unsigned int free, total;
    CUdeviceptr piece;
    (void)state;
    assert_ok(cuMemAlloc_v2(&piece, MIB(24)));
    assert_ok(cuMemGetInfo(&free, &total));
    assert_int_equal(free, MIB(1000));
    assert_int_equal(total, MIB(1024));
    assert_ok(cuDeviceTotalMem(&total, 0));
    assert_int_equal(total, MIB(1024));
    assert_ok(cuMemFree_v2(piece));
}

static void test_null_pointers_get_what_the_driver_gives(void **state)
{
    size_t figure = 1;
    (void)state;
    /* Measured on an H200, driver 580.159. */
    assert_ok(cuMemGetInfo_v2(NULL, NULL));
    assert_ok(cuMemGetInfo_v2(&figure, NULL));
    assert_int_equal(figure, MIB(1024));
    assert_ok(cuMemGetInfo_v2(NULL, &figure));
    assert_int_equal(figure, MIB(1024));
    assert_int_equal(cuDeviceTotalMem_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuDeviceTotalMem_v2(&figure, 99), CUDA_ERROR_INVALID_DEVICE);
}

static void test_without_a_context_the_drivers_error_comes_through(void **state)
{
    CUcontext context;
    size_t free, total;
    (void)state;
    assert_ok(cuCtxGetCurrent(&context));
    assert_ok(cuCtxSetCurrent(NULL));
    assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuDeviceTotalMem_v2(&total, 0));
    assert_int_equal(total, MIB(1024));
    assert_ok(cuCtxSetCurrent(context));
}

static void test_free_is_never_more_than_the_card_has(void **state)
{
    size_t free, total;
    CUdeviceptr large;
    (void)state;
    assert_ok(cuMemAlloc_v2(&large, MIB(1000)));
    assert_ok(cuMemGetInfo_v2(&free, &total));
    assert_int_equal(free, MIB(24));
    assert_ok(cuMemFree_v2(large));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_the_device_looks_as_large_as_the_limit),
        CLEAN(test_the_figures_of_cuda_2_agree),
        CLEAN(test_null_pointers_get_what_the_driver_gives),
        CLEAN(test_without_a_context_the_drivers_error_comes_through),
        CLEAN(test_free_is_never_more_than_the_card_has),
    };
    return cmocka_run_group_tests_name("query", tests, preload_set_up, NULL);
}
