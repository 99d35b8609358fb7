// SPDX-License-Identifier: MIT
//
// cuMemCreate's memory in sparse and deferred arrays of the simulated GPU.

#include "fixture.h"

static CUarray create_array(unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 2048,
                                    .Height = 1024,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 4,
                                    .Flags = flags};
    CUarray array = NULL;

    assert_ok(cuArray3DCreate_v2(&array, &desc));
    return array;
}

static CUmemGenericAllocationHandle create_pool(void)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    assert_ok(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    return handle;
}

/* All of an array of create_array. */
static CUarrayMapInfo operation(CUarray array, CUmemOperationType type,
                                CUmemGenericAllocationHandle handle)
{
    return (CUarrayMapInfo){
        .resourceType = CU_RESOURCE_TYPE_ARRAY,
        .resource.array = array,
        .subresource.sparseLevel = {.extentWidth = 2048, .extentHeight = 1024, .extentDepth = 1},
        .memOperationType = type,
        .memHandle.memHandle = handle,
        .deviceBitMask = 1};
}

static void test_memory_stays_while_an_array_has_it(void **state)
{
    static const unsigned flags[] = {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        CUarray array = create_array(flags[i % 2]);
        CUmemGenericAllocationHandle handle = create_pool();
        CUarrayMapInfo map = operation(array, CU_MEM_OPERATION_TYPE_MAP, handle);
        CUarrayMapInfo unmap = operation(array, CU_MEM_OPERATION_TYPE_UNMAP, 0);

        assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
        assert_ok(cuMemRelease(handle));
        assert_int_equal(fixture_took(), 32);
        if (i < 2)
            assert_ok(cuMemMapArrayAsync_ptsz(&unmap, 1, NULL));
        else
            assert_ok(cuArrayDestroy(array));
        assert_int_equal(fixture_took(), -32);
        if (i < 2)
            assert_ok(cuArrayDestroy(array));
    }
}

static void test_memory_put_over_other_memory_takes_it_out(void **state)
{
    CUarray array = create_array(CUDA_ARRAY3D_SPARSE);

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle handle = create_pool();
        CUarrayMapInfo map = operation(array, CU_MEM_OPERATION_TYPE_MAP, handle);

        assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
        assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
        assert_ok(cuMemRelease(handle));
        assert_int_equal(fixture_took(), i == 0 ? 32 : 0);
    }
    assert_ok(cuArrayDestroy(array));
    assert_int_equal(fixture_took(), -32);
}

static void test_memory_in_arrays_goes_with_their_context(void **state)
{
    CUcontext context;

    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    CUmemGenericAllocationHandle handle = create_pool();
    CUarrayMapInfo map =
        operation(create_array(CUDA_ARRAY3D_SPARSE), CU_MEM_OPERATION_TYPE_MAP, handle);
    assert_ok(cuMemMapArrayAsync(&map, 1, NULL));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(fixture_took(), 64 + 32);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -(64 + 32));
}

static void test_operations_that_make_no_sense_are_refused(void **state)
{
    CUarray array = create_array(CUDA_ARRAY3D_SPARSE), plain = create_array(0);
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle = create_pool(), no_pool;
    CUarrayMapInfo good = operation(array, CU_MEM_OPERATION_TYPE_MAP, handle), bad;

    (void)state;
    assert_ok(cuMemCreate(&no_pool, 2 * MIB, &prop, 0));
    assert_int_equal(cuMemMapArrayAsync(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = operation((CUarray)&bad, CU_MEM_OPERATION_TYPE_MAP, handle);
    assert_int_equal(cuMemMapArrayAsync(&bad, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    bad = operation(plain, CU_MEM_OPERATION_TYPE_MAP, handle);
    assert_int_equal(cuMemMapArrayAsync(&bad, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = operation(array, CU_MEM_OPERATION_TYPE_MAP, no_pool);
    assert_int_equal(cuMemMapArrayAsync(&bad, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = operation(array, CU_MEM_OPERATION_TYPE_UNMAP, handle);
    assert_int_equal(cuMemMapArrayAsync(&bad, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = good;
    bad.deviceBitMask = 2;
    CUarrayMapInfo both[] = {good, bad}; /* nothing is done */
    assert_int_equal(cuMemMapArrayAsync(both, 2, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuArrayDestroy(plain));
    assert_ok(cuMemRelease(no_pool));
    fixture_took();
    assert_ok(cuMemRelease(handle));
    assert_int_equal(fixture_took(), -32);
    assert_ok(cuArrayDestroy(array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_stays_while_an_array_has_it),
        cmocka_unit_test(test_memory_put_over_other_memory_takes_it_out),
        cmocka_unit_test(test_memory_in_arrays_goes_with_their_context),
        cmocka_unit_test(test_operations_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
