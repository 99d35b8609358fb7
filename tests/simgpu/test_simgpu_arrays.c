// SPDX-License-Identifier: MIT
//
// Arrays of the simulated GPU: what they take, what the driver says that they need, views.

#include "fixture.h"

static CUDA_ARRAY3D_DESCRIPTOR describe(CUarray_format format, unsigned channels, size_t width,
                                        size_t height, size_t depth, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = width,
                                     .Height = height,
                                     .Depth = depth,
                                     .Format = format,
                                     .NumChannels = channels,
                                     .Flags = flags};
}

static CUarray create(CUDA_ARRAY3D_DESCRIPTOR desc)
{
    CUarray array = NULL;

    assert_ok(cuArray3DCreate_v2(&array, &desc));
    return array;
}

static uint64_t need(CUDA_ARRAY3D_DESCRIPTOR desc)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS told;

    desc.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    CUarray twin = create(desc);
    assert_ok(cuArrayGetMemoryRequirements(&told, twin, 0));
    assert_ok(cuArrayDestroy(twin));
    return told.size;
}

static void test_a_deferred_twin_tells_what_an_array_takes(void **state)
{
    static const struct {
        CUarray_format format;
        unsigned channels;
        size_t width, height, depth;
        unsigned flags;
        uint64_t need;
        int took;
    } rows[] = {
        {CU_AD_FORMAT_FLOAT, 4, 1000, 1000, 0, 0, 16384000, 16},
        {CU_AD_FORMAT_UNSIGNED_INT8, 1, 1000, 0, 0, 0, 65536, 2},
        {CU_AD_FORMAT_FLOAT, 1, 100000, 0, 0, 0, 3211264, 4},
        {CU_AD_FORMAT_HALF, 2, 256, 256, 256, 0, 67108864, 64},
        {CU_AD_FORMAT_FLOAT, 1, 512, 512, 6, CUDA_ARRAY3D_CUBEMAP, 6291456, 6},
        {CU_AD_FORMAT_FLOAT, 1, 512, 512, 10, CUDA_ARRAY3D_LAYERED, 10485760, 10},
        {CU_AD_FORMAT_BC1_UNORM, 4, 2048, 2048, 0, 0, 2097152, 2},
        {CU_AD_FORMAT_BC7_UNORM, 4, 1000, 1000, 3, CUDA_ARRAY3D_LAYERED, 3145728, 4},
        {CU_AD_FORMAT_FLOAT, 1, 1000, 129, 0, 0, 1048576, 2},
        {CU_AD_FORMAT_FLOAT, 1, 33, 5000, 0, 0, 983040, 2},
        {CU_AD_FORMAT_FLOAT, 1, 100, 100, 100, 0, 5242880, 6},
        {CU_AD_FORMAT_FLOAT, 1, 100, 100, 33, 0, 2293760, 4},
        {CU_AD_FORMAT_FLOAT, 1, 100, 100, 3, 0, 196608, 2},
        {CU_AD_FORMAT_FLOAT, 1, 1000, 1000, 1, 0, 4063232, 4},
        {CU_AD_FORMAT_NV12, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 3473408, 4},
        {CU_AD_FORMAT_P010, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 6946816, 8},
        {CU_AD_FORMAT_Y416, 4, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 17694720, 18},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUDA_ARRAY3D_DESCRIPTOR desc = describe(rows[i].format, rows[i].channels, rows[i].width,
                                                rows[i].height, rows[i].depth, rows[i].flags);

        assert_int_equal(need(desc), rows[i].need);
        assert_int_equal(fixture_took(), 0);
        CUarray array = create(desc);
        assert_int_equal(fixture_took(), rows[i].took);
        assert_ok(cuArrayDestroy(array));
        assert_int_equal(fixture_took(), -rows[i].took);
    }
}

static void test_small_arrays_share_blocks_among_themselves_only(void **state)
{
    CUarray array[64];
    CUdeviceptr linear;

    (void)state;
    assert_ok(cuMemAlloc_v2(&linear, 1));
    assert_int_equal(fixture_took(), 2);
    for (unsigned i = 0; i < 64; i++)
        array[i] = create(describe(CU_AD_FORMAT_UNSIGNED_INT8, 1, 1000, 0, 0, 0));
    assert_int_equal(fixture_took(), 2);
    for (unsigned i = 0; i < 64; i++)
        assert_ok(cuArrayDestroy(array[i]));
    assert_int_equal(fixture_took(), -2);
    for (unsigned i = 0; i < 3; i++)
        array[i] = create(describe(CU_AD_FORMAT_UNSIGNED_INT8, 1, 1024, 1024, 0, 0));
    assert_int_equal(fixture_took(), 4);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(cuArrayDestroy(array[i]));
    assert_ok(cuMemFree_v2(linear));
    assert_int_equal(fixture_took(), -6);
}

static void test_mipmaps_take_all_their_levels(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(CU_AD_FORMAT_FLOAT, 4, 1000, 1000, 0, 0), told;
    CUDA_ARRAY_MEMORY_REQUIREMENTS need;
    CUmipmappedArray mipmap;
    CUarray level, again;

    (void)state;
    assert_ok(cuMipmappedArrayCreate(&mipmap, &desc, 5));
    assert_int_equal(fixture_took(), 22);
    assert_ok(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    assert_ok(cuMipmappedArrayGetLevel(&again, mipmap, 2));
    assert_ptr_equal(level, again);
    assert_ok(cuArray3DGetDescriptor_v2(&told, level));
    assert_int_equal(told.Width, 250);
    assert_int_equal(cuMipmappedArrayGetLevel(&again, mipmap, 5), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuArrayDestroy(level)); /* changes nothing */
    assert_int_equal(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMipmappedArrayDestroy(mipmap));
    assert_int_equal(fixture_took(), -22);
    assert_ok(cuMipmappedArrayCreate(&mipmap, &desc, 99)); /* as many as there are */
    assert_ok(cuMipmappedArrayGetLevel(&again, mipmap, 9));
    assert_int_equal(cuMipmappedArrayGetLevel(&again, mipmap, 10), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMipmappedArrayDestroy(mipmap));
    fixture_took();
    desc.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    assert_ok(cuMipmappedArrayCreate(&mipmap, &desc, 5));
    assert_ok(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0));
    assert_int_equal(need.size, 21889024);
    assert_ok(cuMipmappedArrayDestroy(mipmap));
    assert_int_equal(fixture_took(), 0);
}

static void test_planes_own_nothing(void **state)
{
    CUarray array = create(
                describe(CU_AD_FORMAT_NV12, 3, 4096, 4096, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)),
            plane;
    CUDA_ARRAY_DESCRIPTOR told;

    (void)state;
    assert_int_equal(fixture_took(), 24);
    assert_ok(cuArrayGetPlane(&plane, array, 1));
    assert_ok(cuArrayGetDescriptor_v2(&told, plane));
    assert_int_equal(told.Width, 2048);
    assert_int_equal(cuArrayGetPlane(&plane, array, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuArrayDestroy(array));
    assert_int_equal(fixture_took(), -24);
}

static void test_sparse_arrays_take_nothing(void **state)
{
    CUarray array = create(describe(CU_AD_FORMAT_FLOAT, 4, 4096, 4096, 0, CUDA_ARRAY3D_SPARSE));

    (void)state;
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuArrayDestroy(array));
    assert_int_equal(fixture_took(), 0);
}

static void test_an_array_that_cannot_be_is_refused_and_leaves_its_output_alone(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(CU_AD_FORMAT_FLOAT, 3, 64, 64, 0, 0);
    CUDA_ARRAY_MEMORY_REQUIREMENTS told;
    CUarray array = (CUarray)7;

    (void)state;
    assert_int_equal(cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_INVALID_VALUE);
    desc = describe(CU_AD_FORMAT_FLOAT, 1, 0, 64, 0, 0);
    assert_int_equal(cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_INVALID_VALUE);
    desc = describe((CUarray_format)0x7f, 1, 64, 64, 0, 0);
    assert_int_equal(cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_INVALID_VALUE);
    desc = describe(CU_AD_FORMAT_FLOAT, 1, 64, 32, 6, CUDA_ARRAY3D_CUBEMAP);
    assert_int_equal(cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_INVALID_VALUE);
    desc = describe(CU_AD_FORMAT_FLOAT, 4, 16384, 16384, 4096, 0);
    assert_int_equal(cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(array, (CUarray)7);
    assert_int_equal(cuArray3DCreate_v2(NULL, &desc), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuArray3DCreate_v2(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    array = create(describe(CU_AD_FORMAT_FLOAT, 4, 64, 64, 0, 0));
    assert_int_equal(cuArrayGetMemoryRequirements(&told, array, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuArrayDestroy(array));
    assert_int_equal(fixture_took(), 0);
}

static void test_the_old_interface_makes_arrays_too(void **state)
{
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {
        .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUDA_ARRAY_DESCRIPTOR wide = {
        .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {
        .Width = 256, .Height = 256, .Depth = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array[3];

    (void)state;
    assert_ok(cuArrayCreate(&array[0], &flat));
    assert_int_equal(fixture_took(), 16);
    assert_ok(cuArrayCreate_v2(&array[1], &wide));
    assert_int_equal(fixture_took(), 16);
    assert_ok(cuArray3DCreate(&array[2], &deep));
    assert_int_equal(fixture_took(), 4);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(cuArrayDestroy(array[i]));
    assert_int_equal(fixture_took(), -36);
}

static void test_arrays_die_with_their_context(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(CU_AD_FORMAT_FLOAT, 4, 1000, 1000, 0, 0);
    CUmipmappedArray mipmap;
    CUcontext context;
    CUarray level;

    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    create(desc);
    assert_ok(cuMipmappedArrayCreate(&mipmap, &desc, 5));
    assert_ok(cuMipmappedArrayGetLevel(&level, mipmap, 0));
    assert_int_equal(fixture_took(), 64 + 16 + 22);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -(64 + 16 + 22));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_deferred_twin_tells_what_an_array_takes),
        cmocka_unit_test(test_small_arrays_share_blocks_among_themselves_only),
        cmocka_unit_test(test_mipmaps_take_all_their_levels),
        cmocka_unit_test(test_planes_own_nothing),
        cmocka_unit_test(test_sparse_arrays_take_nothing),
        cmocka_unit_test(test_an_array_that_cannot_be_is_refused_and_leaves_its_output_alone),
        cmocka_unit_test(test_the_old_interface_makes_arrays_too),
        cmocka_unit_test(test_arrays_die_with_their_context),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
