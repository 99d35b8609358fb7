/* SPDX-License-Identifier: MIT
 *
 * entry_import.c: what belongs to another process is listed, never charged, never refused, and
 * given back without a trace.
 */
#include "preload.h"

#include <sys/wait.h>
#include <unistd.h>

/* What a process of its own offers: linear memory, and a pointer of its pool. */
struct offer {
    CUipcMemHandle ipc;
    CUmemPoolPtrExportData pointer;
};

static struct offer offer;
static int to_parent[2], to_child[2];
static pid_t child;

static int be_the_owner(void)
{
    CUcontext context;
    CUdeviceptr piece;
    struct offer made;
    char end;
    bool is_made = cuInit(0) == CUDA_SUCCESS &&
                   cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                   cuCtxSetCurrent(context) == CUDA_SUCCESS &&
                   cuMemAlloc_v2(&piece, MIB(900)) == CUDA_SUCCESS &&
                   cuIpcGetMemHandle(&made.ipc, piece) == CUDA_SUCCESS;
    if (!is_made || write(to_parent[1], &made, sizeof made) != (ssize_t)sizeof made)
        return 1;
    return read(to_child[0], &end, 1) != 0; /* the parent has closed its end */
}

static int set_up(void **state)
{
    if (pipe(to_parent) != 0 || pipe(to_child) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        close(to_child[1]);
        _exit(be_the_owner());
    }
    close(to_parent[1]);
    if (read(to_parent[0], &offer, sizeof offer) != (ssize_t)sizeof offer)
        return -1;
    return preload_set_up(state);
}

static int tear_down(void **state)
{
    int status;
    (void)state;
    close(to_child[1]);
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

static uint64_t listed(void)
{
    return atomic_load(&preload_device()->by_kind[GPULIMIT_KIND_IMPORTED].count);
}

static void test_memory_of_another_process_is_listed_and_its_owner_pays(void **state)
{
    CUdeviceptr first, again, all;
    (void)state;
    assert_ok(cuMemAlloc_v2(&all, MIB(1024))); /* with the limit full */
    assert_ok(cuIpcOpenMemHandle_v2(&first, offer.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(listed(), 1);
    assert_ok(cuIpcOpenMemHandle(&again, offer.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(listed(), 1);
    assert_int_not_equal(cuMemFree_v2(first), CUDA_SUCCESS);
    assert_int_equal(listed(), 1);
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), MIB(1024));
    assert_ok(cuIpcCloseMemHandle(first));
    assert_int_equal(listed(), 1);
    assert_ok(cuIpcCloseMemHandle(again));
    assert_int_equal(listed(), 0);
    assert_int_not_equal(cuIpcCloseMemHandle(first), CUDA_SUCCESS);
    assert_ok(cuMemFree_v2(all));
}

static void test_what_cannot_be_opened_is_not_listed(void **state)
{
    CUdeviceptr piece;
    (void)state;
    simgpu_fail_next("cuIpcOpenMemHandle_v2", CUDA_ERROR_MAP_FAILED);
    assert_int_equal(cuIpcOpenMemHandle_v2(&piece, offer.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                     CUDA_ERROR_MAP_FAILED);
    assert_int_equal(listed(), 0);
}

/* Its own pool will do: what is imported has an address of its own. */
static void test_a_pointer_of_an_imported_pool_is_listed_until_it_is_freed(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool, imported;
    CUdeviceptr piece, there, no;
    int descriptor;
    (void)state;
    assert_ok(cuMemPoolCreate(&pool, &props));
    assert_ok(cuMemAllocFromPoolAsync(&piece, MIB(40), pool, NULL));
    assert_ok(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(descriptor);
    assert_ok(cuMemPoolExportPointer(&offer.pointer, piece));
    assert_ok(cuMemPoolImportPointer(&there, imported, &offer.pointer));
    assert_int_equal(listed(), 1);
    assert_int_equal(preload_free(), MIB(1024 - 64));
    assert_int_equal(cuMemAllocFromPoolAsync(&no, MIB(1), imported, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(there));
    assert_int_equal(listed(), 0);
    assert_int_equal(preload_free(), MIB(1024 - 64));
    assert_ok(cuMemPoolDestroy(imported));
    assert_ok(cuMemFreeAsync(piece, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_external_memory_is_listed_and_what_is_mapped_out_of_it_is_not(void **state)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                             .size = MIB(32)};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = MIB(32)};
    CUmemGenericAllocationHandle handle;
    CUexternalMemory external;
    CUdeviceptr mapped;
    (void)state;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_ok(cuMemCreate(&handle, MIB(32), &prop, 0));
    assert_ok(cuMemExportToShareableHandle(&desc.handle.fd, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuImportExternalMemory(&external, &desc));
    assert_ok(cuExternalMemoryGetMappedBuffer(&mapped, external, &buffer));
    assert_int_equal(listed(), 1);
    assert_ok(cuMemFree_v2(mapped));
    assert_ok(cuMemRelease(handle)); /* our own memory, and it lives on */
    usleep(150000);                  /* by then the next question looks what the device holds */
    assert_int_equal(preload_free(), MIB(1024 - 32));
    assert_int_equal(preload_device_bytes(), MIB(32));
    assert_ok(cuDestroyExternalMemory(external));
    assert_int_equal(listed(), 0);
}

static void test_graphics_memory_is_listed_while_it_is_mapped(void **state)
{
    CUgraphicsResource resources[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        resources[i] = simgpu_graphics_resource();
    assert_ok(cuGraphicsMapResources(2, resources, NULL));
    assert_int_equal(listed(), 2);
    assert_int_equal(cuGraphicsMapResources(1, resources, NULL), CUDA_ERROR_ALREADY_MAPPED);
    assert_int_equal(listed(), 2);
    assert_ok(cuGraphicsUnmapResources_ptsz(1, resources, NULL));
    assert_int_equal(listed(), 1);
    assert_int_equal(cuGraphicsUnmapResources(1, resources, NULL), CUDA_ERROR_NOT_MAPPED);
    assert_ok(cuGraphicsUnregisterResource(resources[0])); /* as it is, and mapped */
    assert_ok(cuGraphicsUnregisterResource(resources[1]));
    assert_int_equal(listed(), 0);
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, preload_assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_memory_of_another_process_is_listed_and_its_owner_pays),
        CLEAN(test_what_cannot_be_opened_is_not_listed),
        CLEAN(test_a_pointer_of_an_imported_pool_is_listed_until_it_is_freed),
        CLEAN(test_external_memory_is_listed_and_what_is_mapped_out_of_it_is_not),
        CLEAN(test_graphics_memory_is_listed_while_it_is_mapped),
    };
    return cmocka_run_group_tests_name("imports", tests, set_up, tear_down);
}
