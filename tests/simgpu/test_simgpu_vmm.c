// SPDX-License-Identifier: MIT
//
// Virtual memory management of the simulated GPU: memory stays while a handle, a mapping or an
// exported descriptor does.

#include "fixture.h"

#include <unistd.h>

static CUmemAccessDesc access_desc = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static CUmemGenericAllocationHandle create(uint64_t bytes)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle = 0;

    assert_ok(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(uint64_t bytes)
{
    CUdeviceptr at = 0;

    assert_ok(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    assert_true(at);
    return at;
}

static void test_memory_stays_while_a_handle_or_a_mapping_stays(void **state)
{
    CUmemGenericAllocationHandle handle = create(32 * MIB), retained;
    CUdeviceptr at = reserve(64 * MIB);

    (void)state;
    assert_int_equal(fixture_took(), 32);
    assert_ok(cuMemMap(at, 32 * MIB, 0, handle, 0));
    assert_ok(cuMemMap(at + 32 * MIB, 32 * MIB, 0, handle, 0));
    assert_ok(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(at + 77)));
    assert_int_equal(retained, handle); /* the same value */
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemUnmap(at, 32 * MIB));
    assert_ok(cuMemUnmap(at + 32 * MIB, 32 * MIB));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemRelease(retained));
    assert_int_equal(fixture_took(), -32);
    assert_int_equal(cuMemRelease(retained), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAddressFree(at, 64 * MIB));
}

static void test_the_last_mapping_frees_released_memory(void **state)
{
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    CUdeviceptr at = reserve(20 * MIB);

    (void)state;
    assert_ok(cuMemMap(at, 4 * MIB, 0, handle, 0));
    assert_ok(cuMemMap(at + 4 * MIB, 4 * MIB, 0, handle, 0));
    assert_ok(cuMemMap(at + 12 * MIB, 4 * MIB, 0, handle, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 4);
    assert_ok(cuMemUnmap(at, 8 * MIB));            /* two adjacent mappings */
    assert_ok(cuMemUnmap(at + 4 * MIB, 4 * MIB));  /* nothing */
    assert_ok(cuMemUnmap(at + 8 * MIB, 12 * MIB)); /* holes around one */
    assert_int_equal(fixture_took(), -4);
    assert_ok(cuMemAddressFree(at, 20 * MIB));
}

static void test_a_mapping_is_unmapped_whole_or_not_at_all(void **state)
{
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    CUdeviceptr at = reserve(20 * MIB);

    (void)state;
    assert_ok(cuMemMap(at, 4 * MIB, 0, handle, 0));
    assert_int_equal(cuMemUnmap(at, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(at + 2 * MIB, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(at + 1, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(at, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(0x1000000000, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemAddressFree(at, 20 * MIB), CUDA_ERROR_INVALID_VALUE); /* still mapped */
    assert_ok(cuMemUnmap(at, 20 * MIB));
    assert_int_equal(cuMemAddressFree(at, 10 * MIB), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAddressFree(at, 20 * MIB));
    assert_ok(cuMemRelease(handle));
    fixture_took();
}

static void test_mapping_answers_by_what_is_wrong(void **state)
{
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    CUdeviceptr at = reserve(20 * MIB);

    (void)state;
    assert_int_equal(cuMemMap(at, 4 * MIB, 2 * MIB, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuMemMap(at, 2 * MIB, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuMemMap(at, 8 * MIB, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuMemMap(at + 4096, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemMap(at, 4 * MIB, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemMap(at, 0, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemMap(0x1000000000, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemMap(at, 4 * MIB, 0, handle, 0));
    assert_int_equal(cuMemMap(at + 2 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemUnmap(at, 4 * MIB));
    assert_ok(cuMemAddressFree(at, 20 * MIB));
    assert_ok(cuMemRelease(handle));
    fixture_took();
}

static void test_creating_answers_by_what_is_wrong(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle = 7;
    size_t granularity;

    (void)state;
    assert_int_equal(cuMemCreate(&handle, 1000, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 3 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 64 * TIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemCreate(NULL, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 2 * MIB, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location.id = 99;
    assert_int_equal(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(handle, 7); /* left alone, unlike cuMemAlloc's output */
    assert_int_equal(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemGetAllocationGranularity(&granularity, &prop, 0));
    assert_int_equal(granularity, 2 * MIB);
}

static void test_memory_on_the_host_costs_the_device_nothing(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop(), told;
    CUmemGenericAllocationHandle numa, host;

    (void)state;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    assert_ok(cuMemCreate(&numa, 1024 * MIB, &prop, 0));
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    assert_int_equal(cuMemCreate(&host, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    assert_ok(cuMemCreate(&host, 1024 * MIB, &prop, 0));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemGetAllocationPropertiesFromHandle(&told, numa));
    assert_int_equal(told.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
    assert_ok(cuMemRelease(numa));
    assert_ok(cuMemRelease(host));
    assert_int_equal(fixture_took(), 0);
}

static void test_access_is_set_over_whole_mappings(void **state)
{
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    CUdeviceptr at = reserve(12 * MIB), base;
    size_t bytes;

    (void)state;
    assert_ok(cuMemMap(at, 4 * MIB, 0, handle, 0));
    assert_int_equal(cuMemGetAddressRange_v2(&base, &bytes, at), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(cuMemSetAccess(at, 2 * MIB, &access_desc, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemSetAccess(at, 8 * MIB, &access_desc, 1), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemSetAccess(at, 4 * MIB, &access_desc, 1));
    assert_ok(cuMemGetAddressRange_v2(&base, &bytes, at + 77));
    assert_int_equal(base, at);
    assert_int_equal(bytes, 4 * MIB);
    assert_ok(cuMemsetD8_v2(at, 0, 4 * MIB));
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE); /* no pointer of cuMemAlloc */
    assert_ok(cuMemUnmap(at, 4 * MIB));
    assert_ok(cuMemAddressFree(at, 12 * MIB));
    assert_ok(cuMemRelease(handle));
    fixture_took();
}

static void test_an_import_of_ones_own_memory_counts_once(void **state)
{
    CUmemGenericAllocationHandle handle = create(32 * MIB), imported;
    int descriptor;

    (void)state;
    assert_ok(cuMemExportToShareableHandle(&descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_int_equal(close(descriptor), 0);
    assert_int_not_equal(imported, handle); /* a handle of its own */
    assert_int_equal(fixture_took(), 32);
    assert_ok(cuMemRelease(handle));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemRelease(imported));
    assert_int_equal(fixture_took(), -32);
}

static void test_an_open_descriptor_keeps_memory_alive(void **state)
{
    CUmemGenericAllocationHandle handle = create(32 * MIB);
    int descriptor, second;

    (void)state;
    assert_ok(cuMemExportToShareableHandle(&descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(
        cuMemExportToShareableHandle(&second, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(fixture_took(), 32);
    close(descriptor);
    assert_int_equal(fixture_took(), 0);
    close(second);
    assert_int_equal(fixture_took(), -32);
}

static void test_sharing_refuses_what_was_not_meant_for_it(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle, imported = 7;
    int descriptor;

    (void)state;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    assert_ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    assert_int_equal(cuMemExportToShareableHandle(&descriptor, handle,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemRelease(handle));
    int other = dup(2);
    assert_int_equal(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)other,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     CUDA_ERROR_INVALID_VALUE);
    close(other);
    assert_int_equal(imported, 7);
    fixture_took();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_stays_while_a_handle_or_a_mapping_stays),
        cmocka_unit_test(test_the_last_mapping_frees_released_memory),
        cmocka_unit_test(test_a_mapping_is_unmapped_whole_or_not_at_all),
        cmocka_unit_test(test_mapping_answers_by_what_is_wrong),
        cmocka_unit_test(test_creating_answers_by_what_is_wrong),
        cmocka_unit_test(test_memory_on_the_host_costs_the_device_nothing),
        cmocka_unit_test(test_access_is_set_over_whole_mappings),
        cmocka_unit_test(test_an_import_of_ones_own_memory_counts_once),
        cmocka_unit_test(test_an_open_descriptor_keeps_memory_alive),
        cmocka_unit_test(test_sharing_refuses_what_was_not_meant_for_it),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
