/* SPDX-License-Identifier: MIT
 *
 * entry_array.c: arrays are charged by the driver's own figure, and share blocks.
 */
#include "preload.h"

static CUDA_ARRAY3D_DESCRIPTOR shape(size_t width, size_t height, size_t depth, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = width,
                                     .Height = height,
                                     .Depth = depth,
                                     .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 4,
                                     .Flags = flags};
}

/* The ledger never shows less than the device has given. */
static void assert_covered(uint64_t mib)
{
    assert_int_equal(preload_device_bytes(), MIB(mib));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(mib));
    assert_int_equal(preload_free(), MIB(1024 - mib));
}

static void test_an_array_costs_what_the_driver_says_that_it_requires(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(1000, 1000, 0, 0);
    CUarray array;
    (void)state;
    assert_ok(cuArray3DCreate_v2(&array, &descriptor));
    assert_covered(16);
    assert_int_equal(atomic_load(&preload_device()->requested_bytes), 16384000);
    assert_int_equal(atomic_load(&preload_device()->by_kind[GPULIMIT_KIND_ARRAY].count), 1);
    assert_ok(cuArrayDestroy(array));
}

static void test_small_arrays_share_a_block(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(256, 256, 0, 0); /* 1 MiB */
    CUarray arrays[8];
    static const uint64_t mib[] = {2, 2, 4, 4, 6, 6, 8, 8};
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        assert_ok(cuArray3DCreate_v2(&arrays[i], &descriptor));
        assert_covered(mib[i]);
    }
    for (unsigned i = 8; i-- > 0;)
        assert_ok(cuArrayDestroy(arrays[i]));
}

static void test_thousands_of_tiny_arrays_share_a_block_too(void **state)
{
    static const struct {
        unsigned width, height, mib;
    } shapes[] = {{1, 0, 2}, {64, 0, 16}, {16, 16, 8}, {100, 100, 410}};
    static CUarray arrays[2048];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(shapes[i].width, shapes[i].height, 0, 0);
        for (unsigned j = 0; j < 2048; j++)
            assert_ok(cuArray3DCreate_v2(&arrays[j], &descriptor));
        assert_covered(shapes[i].mib);
        for (unsigned j = 0; j < 2048; j++)
            assert_ok(cuArrayDestroy(arrays[j]));
    }
}

static void test_a_mipmapped_array_costs_all_its_levels_and_a_level_nothing(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(1000, 1000, 0, 0);
    CUmipmappedArray array;
    CUarray level;
    (void)state;
    assert_ok(cuMipmappedArrayCreate(&array, &descriptor, 5));
    uint64_t charged = atomic_load(&preload_device()->charged_bytes);
    assert_int_equal(charged, preload_device_bytes());
    assert_true(charged > MIB(16));
    assert_ok(cuMipmappedArrayGetLevel(&level, array, 1));
    cuArrayDestroy(level); /* whatever the driver answers, it owns nothing */
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), charged);
    assert_ok(cuMipmappedArrayDestroy(array));
}

static void test_sparse_and_deferred_arrays_are_free(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR sparse = shape(8192, 8192, 0, CUDA_ARRAY3D_SPARSE);
    CUDA_ARRAY3D_DESCRIPTOR deferred = shape(8192, 8192, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUarray a, b;
    (void)state;
    assert_ok(cuArray3DCreate_v2(&a, &sparse));
    assert_ok(cuArray3DCreate_v2(&b, &deferred));
    assert_covered(0);
    assert_ok(cuArrayDestroy(a));
    assert_ok(cuArrayDestroy(b));
}

static void test_a_shape_that_the_driver_refuses_is_its_to_refuse(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(1000, 1000, 0, 0);
    CUarray array;
    uint64_t denials = atomic_load(&preload_device()->denials);
    (void)state;
    descriptor.NumChannels = 3;
    assert_int_equal(cuArray3DCreate_v2(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(atomic_load(&preload_device()->denials), denials);
}

static void test_where_the_driver_does_not_say_the_shape_does(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(1024, 1024, 0, 0);
    CUarray array;
    (void)state;
    simgpu_fail_next("cuArrayGetMemoryRequirements", CUDA_ERROR_NOT_SUPPORTED);
    assert_ok(cuArray3DCreate_v2(&array, &descriptor));
    assert_covered(16);
    assert_ok(cuArrayDestroy(array));
}

static void test_arrays_die_with_their_context(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = shape(1000, 1000, 0, 0);
    CUcontext primary, context;
    CUarray array;
    (void)state;
    assert_ok(cuCtxGetCurrent(&primary));
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    assert_ok(cuArray3DCreate_v2(&array, &descriptor));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuCtxSetCurrent(primary));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_an_array_costs_what_the_driver_says_that_it_requires),
        CLEAN(test_small_arrays_share_a_block),
        CLEAN(test_thousands_of_tiny_arrays_share_a_block_too),
        CLEAN(test_a_mipmapped_array_costs_all_its_levels_and_a_level_nothing),
        CLEAN(test_sparse_and_deferred_arrays_are_free),
        CLEAN(test_a_shape_that_the_driver_refuses_is_its_to_refuse),
        CLEAN(test_where_the_driver_does_not_say_the_shape_does),
        CLEAN(test_arrays_die_with_their_context),
    };
    return cmocka_run_group_tests_name("arrays", tests, preload_set_up, NULL);
}
