/* SPDX-License-Identifier: MIT
 *
 * cuMemMapArrayAsync: memory of cuMemCreate stays charged while an array has it.
 */
#include "preload.h"

enum { WIDTH = 2048, HEIGHT = 1024, TILES_MIB = 32 };

static CUarray create_array(unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = WIDTH,
                                          .Height = HEIGHT,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4,
                                          .Flags = flags};
    CUarray array = NULL;
    assert_ok(cuArray3DCreate_v2(&array, &descriptor));
    return array;
}

static CUmemGenericAllocationHandle create(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle = 0;
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    assert_ok(cuMemCreate(&handle, MIB(TILES_MIB), &prop, 0));
    return handle;
}

/* The rows [from, to) of an array of create_array. */
static CUarrayMapInfo rows(CUarray array, unsigned from, unsigned to,
                           CUmemGenericAllocationHandle handle)
{
    CUmemOperationType type = handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
    return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_ARRAY,
                            .resource.array = array,
                            .subresource.sparseLevel = {.offsetY = from,
                                                        .extentWidth = WIDTH,
                                                        .extentHeight = to - from,
                                                        .extentDepth = 1},
                            .memOperationType = type,
                            .memHandle.memHandle = handle,
                            .deviceBitMask = 1};
}

/* Maps new memory into an array, and lets go of its handle. */
static void fill(CUarray array, unsigned from, unsigned to)
{
    CUmemGenericAllocationHandle handle = create();
    CUarrayMapInfo map = rows(array, from, to, handle);
    assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
    assert_ok(cuMemRelease(handle));
    assert_ok(cuStreamSynchronize(NULL));
}

static void unmap(CUarray array, unsigned from, unsigned to, CUstream stream)
{
    CUarrayMapInfo map = rows(array, from, to, 0);
    assert_ok(cuMemMapArrayAsync(&map, 1, stream));
}

static void assert_charged(uint64_t mib)
{
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(mib));
    assert_int_equal(preload_free(), MIB(1024 - mib));
    assert_true(preload_device_bytes() <= MIB(mib));
}

static void test_memory_goes_with_the_array(void **state)
{
    static const unsigned flags[] = {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        CUarray array = create_array(flags[i]);
        fill(array, 0, HEIGHT);
        assert_charged(TILES_MIB);
        assert_int_equal(preload_device_bytes(), MIB(TILES_MIB));
        simgpu_fail_next("cuArrayDestroy", CUDA_ERROR_UNKNOWN);
        assert_int_equal(cuArrayDestroy(array), CUDA_ERROR_UNKNOWN);
        assert_charged(TILES_MIB);
        assert_ok(cuArrayDestroy(array));
        assert_charged(0);
    }
}

static void test_memory_goes_with_a_mipmapped_array(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = WIDTH,
                                          .Height = HEIGHT,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4,
                                          .Flags = CUDA_ARRAY3D_SPARSE};
    CUmipmappedArray array;
    (void)state;
    assert_ok(cuMipmappedArrayCreate(&array, &descriptor, 3));
    CUmemGenericAllocationHandle handle = create();
    CUarrayMapInfo map = rows(NULL, 0, HEIGHT, handle);
    map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    map.resource.mipmap = array;
    assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
    assert_ok(cuMemRelease(handle));
    assert_charged(TILES_MIB);
    assert_ok(cuMipmappedArrayDestroy(array));
    assert_charged(0);
}

static void test_memory_goes_by_unmapping_once_its_stream_is_synchronised(void **state)
{
    CUarray array = create_array(CUDA_ARRAY3D_SPARSE);
    CUstream stream, other;
    (void)state;
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    fill(array, 0, HEIGHT);
    unmap(array, 0, HEIGHT, stream);
    assert_ok(cuStreamSynchronize(other));
    assert_charged(TILES_MIB);
    assert_ok(cuStreamSynchronize(stream));
    assert_charged(0);
    fill(array, 0, HEIGHT);
    unmap(array, 0, HEIGHT, NULL);
    assert_ok(cuStreamSynchronize(NULL));
    assert_charged(0);
    fill(array, 0, HEIGHT);
    unmap(array, 0, HEIGHT, CU_STREAM_PER_THREAD);
    assert_ok(cuStreamSynchronize(CU_STREAM_PER_THREAD)); /* whose, is not known */
    assert_charged(TILES_MIB);
    assert_ok(cuCtxSynchronize());
    assert_charged(0);
    fill(array, 0, HEIGHT);
    unmap(array, 0, HEIGHT, other);
    assert_ok(cuStreamDestroy_v2(other)); /* its work need not be done */
    assert_charged(TILES_MIB);
    assert_ok(cuCtxSynchronize());
    assert_charged(0);
    assert_ok(cuStreamDestroy_v2(stream));
    assert_ok(cuArrayDestroy(array));
}

static void test_memory_stays_by_an_unmapping_of_other_texels(void **state)
{
    CUarray array = create_array(CUDA_ARRAY3D_SPARSE), other = create_array(CUDA_ARRAY3D_SPARSE);
    (void)state;
    fill(array, 0, HEIGHT / 2);
    fill(array, HEIGHT / 2, HEIGHT);
    unmap(other, 0, HEIGHT, NULL);
    unmap(array, 0, HEIGHT / 4, NULL);
    assert_ok(cuCtxSynchronize());
    assert_charged(2 * TILES_MIB);
    unmap(array, 0, HEIGHT / 2, NULL);
    assert_ok(cuCtxSynchronize());
    assert_charged(TILES_MIB);
    fill(array, HEIGHT / 2, HEIGHT); /* over what lies there */
    unmap(array, 0, HEIGHT, NULL);
    assert_ok(cuCtxSynchronize());
    assert_charged(0);
    assert_ok(cuArrayDestroy(array));
    assert_ok(cuArrayDestroy(other));
}

static void test_memory_with_a_handle_stays_without_the_array(void **state)
{
    CUarray array = create_array(CUDA_ARRAY3D_SPARSE);
    CUmemGenericAllocationHandle handle = create();
    CUarrayMapInfo map = rows(array, 0, HEIGHT, handle);
    (void)state;
    assert_ok(cuMemMapArrayAsync_ptsz(&map, 1, NULL));
    assert_ok(cuArrayDestroy(array));
    assert_charged(TILES_MIB);
    assert_ok(cuMemRelease(handle));
    assert_charged(0);
}

static void test_memory_in_arrays_goes_with_their_context(void **state)
{
    CUcontext primary, context;
    (void)state;
    assert_ok(cuCtxGetCurrent(&primary));
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    fill(create_array(CUDA_ARRAY3D_SPARSE), 0, HEIGHT);
    assert_int_equal(preload_free(), MIB(1024 - TILES_MIB));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuCtxSetCurrent(primary));
    assert_charged(0);
    fill(create_array(CUDA_ARRAY3D_DEFERRED_MAPPING), 0, HEIGHT);
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    assert_ok(cuDevicePrimaryCtxRetain(&primary, 0));
    assert_ok(cuCtxSetCurrent(primary));
    assert_charged(0);
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_memory_goes_with_the_array),
        CLEAN(test_memory_goes_with_a_mipmapped_array),
        CLEAN(test_memory_goes_by_unmapping_once_its_stream_is_synchronised),
        CLEAN(test_memory_stays_by_an_unmapping_of_other_texels),
        CLEAN(test_memory_with_a_handle_stays_without_the_array),
        CLEAN(test_memory_in_arrays_goes_with_their_context),
    };
    return cmocka_run_group_tests_name("tiles", tests, preload_set_up, NULL);
}
