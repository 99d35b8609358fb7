// SPDX-License-Identifier: MIT
//
// Pools of other processes, and which pool a location uses.

#include "import.h"
#include "pool.h"
#include "process.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARE_MAGIC 0x6c6f6f706d697367u

_Static_assert(sizeof(struct import_note) <= sizeof(CUmemPoolPtrExportData), "a note fits");

/* What lies in an exported descriptor. */
struct share_pool {
    uint64_t magic;
    unsigned gpu;
    CUmemLocation location;
};

/* ---- export ---- */

static CUresult share_export(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type)
{
    if (!handle || !handle_is(pool, HANDLE_POOL) || pool->is_imported || !pool->is_shareable ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    struct share_pool share = {.magic = SHARE_MAGIC, .gpu = pool->gpu, .location = pool->location};
    int descriptor = memfd_create("simgpu-pool", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, &share, sizeof share) != (ssize_t)sizeof share)
        return CUDA_ERROR_OPERATING_SYSTEM;
    pool->is_exported = true;
    *(int *)handle = descriptor;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                  CUmemAllocationHandleType handleType,
                                                  unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolExportToShareableHandle, PROCESS_UNSAFE);

    if (result)
        return result;
    return process_leave(flags ? CUDA_ERROR_INVALID_VALUE
                               : share_export(handle_out, pool, handleType));
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolExportPointer, PROCESS_UNSAFE);

    if (result)
        return result;
    const struct memory *memory = memory_find_start(ptr);
    if (!shareData_out || !memory || memory->kind != MEMORY_POOLED || !memory->pool->is_shareable)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    struct import_note note = import_describe(memory, memory->pool->gpu);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &note, sizeof note);
    return process_leave(CUDA_SUCCESS);
}

/* ---- import ---- */

static CUresult share_import(CUmemoryPool *pool, int descriptor, CUmemAllocationHandleType type)
{
    struct share_pool share;

    if (!pool || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread(descriptor, &share, sizeof share, 0) != (ssize_t)sizeof share ||
        share.magic != SHARE_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool created = pool_create(share.location, share.gpu, 0);
    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    created->is_imported = true;
    *pool = created;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                    CUmemAllocationHandleType handleType,
                                                    unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolImportFromShareableHandle, PROCESS_UNSAFE);

    if (result)
        return result;
    return process_leave(flags ? CUDA_ERROR_INVALID_VALUE
                               : share_import(pool_out, (int)(intptr_t)handle, handleType));
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolImportPointer, PROCESS_UNSAFE);
    struct import_note note = {0};

    if (result)
        return result;
    if (shareData)
        memcpy(&note, shareData, sizeof note);
    if (!ptr_out || !handle_is(pool, HANDLE_POOL) || !pool->is_imported || !import_is_note(&note))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    const struct import *import = import_open(IMPORT_POOL, &note, pool);
    if (!import)
        return process_leave(CUDA_ERROR_OUT_OF_MEMORY);
    *ptr_out = import->memory->range.start;
    return process_leave(CUDA_SUCCESS);
}

/* ---- a location's pools ---- */

static CUresult share_find(const CUmemLocation *location, CUmemAllocationType type,
                           struct pool_choice **choice)
{
    unsigned gpu;

    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    bool host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
                location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    bool none = location->type == CU_MEM_LOCATION_TYPE_NONE;

    if (device ? !process_find_gpu(location->id, &gpu) : location->id != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED
            ? !device && !host
            : type != CU_MEM_ALLOCATION_TYPE_MANAGED || (!device && !host && !none))
        return CUDA_ERROR_INVALID_VALUE;
    *choice = pool_choose(*location, type);
    return *choice ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    CUresult result = process_enter(SYMBOL_cuMemGetDefaultMemPool, PROCESS_SAFE);
    struct pool_choice *choice;

    if (result)
        return result;
    result = pool_out ? share_find(location, type, &choice) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pool_out = choice->by_default;
    return process_leave(result);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    CUresult result = process_enter(SYMBOL_cuMemGetMemPool, PROCESS_SAFE);
    struct pool_choice *choice;

    if (result)
        return result;
    result = pool ? share_find(location, type, &choice) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pool = choice->current;
    return process_leave(result);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
                                 CUmemoryPool pool)
{
    CUresult result = process_enter(SYMBOL_cuMemSetMemPool, PROCESS_UNSAFE);
    struct pool_choice *choice;

    if (result)
        return result;
    result = share_find(location, type, &choice);
    if (result)
        return process_leave(result);
    if (!handle_is(pool, HANDLE_POOL) || pool->type != type ||
        pool->location.type != location->type || pool->location.id != location->id)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    choice->current = pool;
    return process_leave(CUDA_SUCCESS);
}
