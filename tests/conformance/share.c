// SPDX-License-Identifier: MIT
//
// Memory of other processes, as far as one process can show it.

#include "conformance.h"

#include <unistd.h>

static void check_ipc(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at, opened = SENTINEL, async;

    section("IPC handles, in their own process");
    CALL(cuMemAlloc_v2(&at, 20 * MIB));
    CALL(cuIpcGetMemHandle(&handle, at));
    CALL(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OUTPUT(opened);
    CALL(cuIpcCloseMemHandle(at));
    CALL(cuIpcGetMemHandle(&handle, at + MIB));
    CALL(cuIpcGetMemHandle(&handle, 12345));
    CALL(cuMemFree_v2(at));
    CALL(cuMemAllocAsync(&async, MIB, stream));
    CALL(cuIpcGetMemHandle(&handle, async));
    CALL(cuMemFreeAsync(async, stream));
    CALL(cuStreamSynchronize(stream));
}

static void check_external(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                             .size = 32 * MIB};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 32 * MIB};
    CUexternalMemory external = NULL;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    section("external memory");
    CALL(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    QUIET(cuMemExportToShareableHandle(&desc.handle.fd, handle,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuImportExternalMemory(&external, &desc));
    CALL(cuExternalMemoryGetMappedBuffer(&at, external, &buffer));
    CALL(cuMemRelease(handle));
    CALL(cuMemFree_v2(at));
    CALL(cuDestroyExternalMemory(external));
}

static void check_shared_pool(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool, imported, by_default;
    CUmemPoolPtrExportData data;
    CUdeviceptr at, there = SENTINEL, again = SENTINEL;
    cuuint64_t value;
    int descriptor = -1;

    section("a shared pool");
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, stream));
    QUIET(cuStreamSynchronize(stream));
    CALL(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    QUIET(close(descriptor));
    CALL(cuMemPoolExportPointer(&data, at));
    CALL(cuMemPoolImportPointer(&there, imported, &data));
    NUMBER(there == at);
    CALL(cuMemPoolImportPointer(&again, imported, &data));
    NUMBER(there == again);
    again = SENTINEL;
    CALL(cuMemAllocFromPoolAsync(&again, MIB, imported, stream));
    OUTPUT(again);
    CALL(cuMemPoolGetAttribute(imported, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    CALL(cuMemPoolTrimTo(imported, 0));
    CALL(cuMemPoolDestroy(imported));
    CALL(cuMemFree_v2(there));
    CALL(cuMemPoolDestroy(imported));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    NUMBER(value);
    CALL(cuMemPoolTrimTo(pool, 0));
    CALL(cuMemPoolDestroy(pool));
    QUIET(cuDeviceGetDefaultMemPool(&by_default, 0));
    CALL(cuMemPoolExportToShareableHandle(&descriptor, by_default,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolExportPointer(&data, 12345));
}

/* May be exported, but is not. */
static void check_shareable_pool(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool;
    CUdeviceptr at;

    section("a pool that could be shared");
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, stream));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolDestroy(pool));
}

void check_shares(void)
{
    check_ipc();
    check_external();
    check_shareable_pool();
    check_shared_pool();
}
