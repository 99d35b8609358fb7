// SPDX-License-Identifier: MIT
//
// Other processes' memory, and pools to the end.

#include "fixture.h"

#include <unistd.h>

static int to_child[2];

/* In the child. Opens the handle that the parent sends. */
static int open_handle(void)
{
    CUdeviceptr at = 7, again = 7, base;
    CUipcMemHandle handle;
    CUcontext context;
    size_t bytes;

    expect(read(to_child[0], &handle, sizeof handle) == sizeof handle);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    uint64_t before = simgpu_process_used(0);
    expect(cuIpcOpenMemHandle_v2(&at, handle, 0) == CUDA_ERROR_INVALID_VALUE);
    expect(cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
    expect(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
    expect(at == again);
    expect(cuMemGetAddressRange_v2(&base, &bytes, at) == CUDA_SUCCESS);
    expect(base == at && bytes == 20 * MIB);
    expect(simgpu_process_used(0) == before);
    expect(cuMemFree_v2(at) == CUDA_ERROR_INVALID_VALUE);
    expect(cuIpcCloseMemHandle(at) == CUDA_SUCCESS);
    expect(cuIpcCloseMemHandle(at) == CUDA_SUCCESS);
    expect(cuIpcCloseMemHandle(at) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

/* First: its child is made before this process calls cuInit. */
static void test_an_ipc_handle_is_opened_as_often_as_it_is_closed(void **state)
{
    int from_child[2], line = -1;
    CUdeviceptr at, opened;
    CUipcMemHandle handle;

    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    if (fixture_fork() == 0) {
        line = open_handle();
        _exit(write(from_child[1], &line, sizeof line) != (ssize_t)sizeof line);
    }
    fixture_set_up(state);
    assert_ok(cuMemAlloc_v2(&at, 20 * MIB));
    assert_ok(cuIpcGetMemHandle(&handle, at + MIB));
    assert_int_equal(cuIpcGetMemHandle(&handle, 12345), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                     CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(write(to_child[1], &handle, sizeof handle), sizeof handle);
    assert_int_equal(read(from_child[0], &line, sizeof line), sizeof line);
    assert_int_equal(line, 0);
    assert_int_equal(cuIpcCloseMemHandle(at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(at));
    fixture_took();
}

static void test_external_memory_lives_until_it_is_destroyed(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                             .size = 32 * MIB};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 32 * MIB};
    CUmemGenericAllocationHandle handle;
    CUexternalMemory external;
    CUdeviceptr at;

    (void)state;
    assert_ok(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    assert_ok(cuMemExportToShareableHandle(&desc.handle.fd, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuImportExternalMemory(&external, &desc));
    assert_ok(cuExternalMemoryGetMappedBuffer(&at, external, &buffer));
    assert_int_equal(fixture_took(), 32);
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuDestroyExternalMemory(external));
    assert_int_equal(fixture_took(), -32);
    desc.handle.fd = 0;
    assert_int_equal(cuImportExternalMemory(&external, &desc), CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuImportExternalMemory(NULL, &desc), CUDA_ERROR_INVALID_VALUE);
}

static CUmemPoolProps props(CUmemAllocationType type, CUmemLocationType location)
{
    return (CUmemPoolProps){.allocType = type, .location = {.type = location}};
}

static void test_an_exported_pool_keeps_its_memory_until_it_is_destroyed(void **state)
{
    CUmemPoolProps shareable = props(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, imported;
    CUdeviceptr at, there, again;
    cuuint64_t value;
    int descriptor;

    (void)state;
    shareable.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_ok(cuMemPoolCreate(&pool, &shareable));
    assert_ok(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, NULL));
    assert_ok(cuMemFreeAsync(at, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(fixture_took(), 0); /* not yet exported */
    assert_ok(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, NULL));
    assert_ok(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(descriptor);
    assert_ok(cuMemPoolExportPointer(&data, at));
    assert_ok(cuMemPoolImportPointer(&there, imported, &data));
    assert_ok(cuMemPoolImportPointer(&again, imported, &data));
    assert_int_equal(there, again);
    assert_int_not_equal(there, at);
    assert_int_equal(fixture_took(), 64);
    assert_int_equal(cuMemAllocFromPoolAsync(&again, MIB, imported, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemPoolGetAttribute(imported, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemPoolTrimTo(imported, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemPoolDestroy(imported), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(there));
    assert_ok(cuMemPoolDestroy(imported));
    assert_ok(cuMemFreeAsync(at, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(fixture_reserved(pool), 0);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(fixture_took(), -64);
    assert_int_equal(cuMemPoolExportPointer(&data, 12345), CUDA_ERROR_INVALID_VALUE);
}

static void test_each_location_has_pools_of_its_own(void **state)
{
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                  host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                  none = {.type = CU_MEM_LOCATION_TYPE_NONE};
    CUmemoryPool by_default, pool, current;

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&by_default, 0));
    assert_ok(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(pool, by_default);
    assert_ok(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ptr_not_equal(pool, by_default);
    assert_ok(cuMemGetDefaultMemPool(&pool, &none, CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ok(cuMemGetMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_int_equal(cuMemGetDefaultMemPool(&pool, &none, CU_MEM_ALLOCATION_TYPE_PINNED),
                     CUDA_ERROR_INVALID_VALUE);
    pool = fixture_create_pool(0, 0);
    assert_ok(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    assert_ok(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal(current, pool);
    assert_int_equal(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemGetMemPool(&current, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(current, by_default);
}

static void test_a_managed_pool_takes_nothing_of_the_device(void **state)
{
    CUmemPoolProps managed = props(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_NONE);
    CUmemoryPool pool;
    unsigned told = 9;
    CUdeviceptr at;

    (void)state;
    assert_ok(cuMemPoolCreate(&pool, &managed));
    assert_ok(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, NULL));
    assert_int_equal(fixture_reserved(pool), 64);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    assert_int_equal(told, 1);
    assert_ok(cuMemFreeAsync(at, NULL));
    assert_ok(cuMemPoolDestroy(pool));
    managed.maxSize = MIB;
    assert_int_equal(cuMemPoolCreate(&pool, &managed), CUDA_ERROR_INVALID_VALUE);
    managed.maxSize = 0;
    managed.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_int_equal(cuMemPoolCreate(&pool, &managed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_ipc_handle_is_opened_as_often_as_it_is_closed),
        cmocka_unit_test(test_external_memory_lives_until_it_is_destroyed),
        cmocka_unit_test(test_an_exported_pool_keeps_its_memory_until_it_is_destroyed),
        cmocka_unit_test(test_each_location_has_pools_of_its_own),
        cmocka_unit_test(test_a_managed_pool_takes_nothing_of_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
