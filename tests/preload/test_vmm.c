/* SPDX-License-Identifier: MIT
 *
 * entry_vmm.c: cuMemCreate and what keeps its memory alive.
 */
#include "preload.h"

#include <stdint.h>
#include <unistd.h>

static CUdeviceptr reserve(uint64_t bytes)
{
    CUdeviceptr range;
    assert_ok(cuMemAddressReserve(&range, bytes, 0, 0, 0));
    return range;
}

static CUmemGenericAllocationHandle create(uint64_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = preload_device_prop();
    assert_ok(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static void test_memory_stays_charged_until_the_last_handle_and_mapping(void **state)
{
    CUdeviceptr range = reserve(MIB(64));
    CUmemGenericAllocationHandle handle = create(MIB(32)), retained;
    (void)state;
    assert_ok(cuMemMap(range, MIB(32), 0, handle, 0));
    assert_ok(cuMemMap(range + MIB(32), MIB(32), 0, handle, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuMemUnmap(range, MIB(32)));
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(range + MIB(40))));
    assert_ok(cuMemUnmap(range + MIB(32), MIB(32)));
    assert_int_equal(preload_free(), MIB(992));
    assert_int_equal(preload_device_bytes(), MIB(32));
    assert_ok(cuMemRelease(retained));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuMemAddressFree(range, MIB(64)));
}

static void test_over_the_limit_the_handle_is_left_untouched(void **state)
{
    CUmemGenericAllocationHandle handle = 4711;
    CUmemAllocationProp prop = preload_device_prop();
    uint64_t calls = simgpu_calls("cuMemCreate");
    (void)state;
    assert_int_equal(cuMemCreate(&handle, MIB(1026), &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(handle, 4711);
    assert_int_equal(simgpu_calls("cuMemCreate"), calls);
}

static void test_one_unmap_over_many_mappings_frees_them_all(void **state)
{
    enum { PIECES = 100 };
    CUdeviceptr range = reserve(MIB(2 * 2 * PIECES));
    (void)state;
    for (unsigned i = 0; i < PIECES; i++) {
        CUmemGenericAllocationHandle handle = create(MIB(2));
        assert_ok(
            cuMemMap(range + MIB(4 * (uint64_t)i), MIB(2), 0, handle, 0)); /* with holes between */
        assert_ok(cuMemRelease(handle));
    }
    assert_int_equal(preload_free(), MIB(1024 - 2 * PIECES));
    assert_ok(cuMemUnmap(range, MIB(2 * 2 * PIECES)));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuMemAddressFree(range, MIB(2 * 2 * PIECES)));
}

static void test_wrong_sizes_and_handles_are_the_drivers_to_refuse(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = preload_device_prop();
    (void)state;
    assert_int_equal(cuMemCreate(&handle, 1000, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_not_equal(cuMemRelease(12345), CUDA_SUCCESS);
    handle = create(MIB(2));
    simgpu_fail_next("cuMemRelease", CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuMemRelease(handle), CUDA_ERROR_UNKNOWN);
    assert_int_equal(preload_free(), MIB(1022));
    assert_ok(cuMemRelease(handle));
}

static void test_host_memory_is_free(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = preload_device_prop();
    CUdeviceptr range = reserve(MIB(2048));
    (void)state;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    assert_ok(cuMemCreate(&handle, MIB(2048), &prop, 0));
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuMemMap(range, MIB(2048), 0, handle, 0));
    assert_ok(cuMemUnmap(range, MIB(2048)));
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemAddressFree(range, MIB(2048)));
}

static void test_memory_imported_from_oneself_is_charged_once(void **state)
{
    CUmemGenericAllocationHandle handle, imported;
    CUmemAllocationProp prop = preload_device_prop();
    int file;
    (void)state;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_ok(cuMemCreate(&handle, MIB(32), &prop, 0));
    assert_ok(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)file,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuMemRelease(imported));
    assert_int_equal(preload_free(), MIB(992));
    close(file);
    assert_ok(cuMemRelease(handle));
}

/* By its own import, or by an open descriptor, memory lives on without a handle of its creation. */
static void test_memory_that_lives_on_by_an_export_stays_charged(void **state)
{
    CUmemGenericAllocationHandle handle, imported;
    CUmemAllocationProp prop = preload_device_prop();
    int file;
    (void)state;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_ok(cuMemCreate(&handle, MIB(32), &prop, 0));
    assert_ok(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)file,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(preload_device_bytes(), MIB(32));
    assert_int_equal(preload_free(), MIB(992));
    close(file);
    assert_int_equal(preload_free(), MIB(992));
    assert_ok(cuMemRelease(imported));
    assert_int_equal(preload_free(), MIB(1024));

    assert_ok(cuMemCreate(&handle, MIB(32), &prop, 0));
    assert_ok(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(preload_device_bytes(), MIB(32));
    assert_int_equal(preload_free(), MIB(992));
    close(file);
    assert_int_equal(preload_free(), MIB(1024));
}

static void test_context_and_thread_do_not_matter(void **state)
{
    CUcontext context;
    (void)state;
    assert_ok(cuCtxGetCurrent(&context));
    assert_ok(cuCtxSetCurrent(NULL));
    CUmemGenericAllocationHandle handle = create(MIB(100));
    assert_ok(cuCtxSetCurrent(context));
    assert_int_equal(preload_free(), MIB(924));
    assert_ok(cuMemRelease(handle));
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_memory_stays_charged_until_the_last_handle_and_mapping),
        CLEAN(test_over_the_limit_the_handle_is_left_untouched),
        CLEAN(test_one_unmap_over_many_mappings_frees_them_all),
        CLEAN(test_wrong_sizes_and_handles_are_the_drivers_to_refuse),
        CLEAN(test_host_memory_is_free),
        CLEAN(test_memory_imported_from_oneself_is_charged_once),
        CLEAN(test_memory_that_lives_on_by_an_export_stays_charged),
        CLEAN(test_context_and_thread_do_not_matter),
    };
    return cmocka_run_group_tests_name("vmm", tests, preload_set_up, NULL);
}
