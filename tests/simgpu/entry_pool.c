// SPDX-License-Identifier: MIT
//
// Pools as objects: created, destroyed, trimmed, asked, and which one a device uses.

#include "capture.h"
#include "import.h"
#include "pool.h"
#include "process.h"

/* ---- life ---- */

static CUresult pool_check_props(const CUmemPoolProps *props, unsigned *gpu)
{
    *gpu = 0;
    if (!props)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        if (props->handleTypes || props->maxSize)
            return CUDA_ERROR_INVALID_VALUE;
        if (props->location.type == CU_MEM_LOCATION_TYPE_NONE)
            return CUDA_SUCCESS;
    } else if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return process_find_gpu(props->location.id, gpu) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return props->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolCreate, PROCESS_UNSAFE);
    unsigned gpu;

    if (result)
        return result;
    result = pool ? pool_check_props(poolProps, &gpu) : CUDA_ERROR_INVALID_VALUE;
    if (result)
        return process_leave(result);
    CUmemoryPool created = pool_create(poolProps->location, gpu, poolProps->maxSize);
    if (created) {
        created->type = poolProps->allocType;
        created->is_shareable = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
        *pool = created;
    }
    return process_leave(created ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolDestroy, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(pool, HANDLE_POOL) || pool->is_default || import_has_any(pool))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    pool_destroy(pool);
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolTrimTo, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!pool_is_usable(pool))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    pool_trim(pool, minBytesToKeep);
    return process_leave(CUDA_SUCCESS);
}

/* ---- attributes ---- */

static uint64_t *pool_figure(CUmemoryPool pool, CUmemPool_attribute attr)
{
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold_bytes;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved_bytes;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high_bytes;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used_bytes;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high_bytes;
    default:
        return NULL;
    }
}

static int *pool_reuse(CUmemoryPool pool, CUmemPool_attribute attr)
{
    return attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
                   attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
               ? &pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES]
               : NULL;
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolGetAttribute, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!pool_is_usable(pool) || !value)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    const uint64_t *figure = pool_figure(pool, attr);
    const int *reuse = pool_reuse(pool, attr);
    if (figure)
        *(cuuint64_t *)value = *figure;
    else if (reuse)
        *(int *)value = *reuse;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    return process_leave(result);
}

static CUresult pool_set(CUmemoryPool pool, CUmemPool_attribute attr, const void *value)
{
    int *reuse = pool_reuse(pool, attr);

    if (reuse) {
        *reuse = *(const int *)value != 0;
        return CUDA_SUCCESS;
    }
    uint64_t wanted = *(const cuuint64_t *)value;
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold_bytes = wanted;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: /* the high-water marks can be put back, no more */
        pool->reserved_high_bytes = wanted ? pool->reserved_high_bytes : pool->reserved_bytes;
        return wanted ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        pool->used_high_bytes = wanted ? pool->used_high_bytes : pool->used_bytes;
        return wanted ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolSetAttribute, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!pool_is_usable(pool) || !value)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(pool_set(pool, attr, value));
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolSetAccess, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!pool_is_usable(pool) || !map || !count)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    pool->access = map[count - 1].flags;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                    CUmemLocation *location)
{
    CUresult result = process_enter(SYMBOL_cuMemPoolGetAccess, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!pool_is_usable(memPool) || !flags || !location)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    bool own = location->type == memPool->location.type && location->id == memPool->location.id;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : memPool->access;
    return process_leave(CUDA_SUCCESS);
}

/* ---- a device's pools ---- */

static CUresult pool_get(CUmemoryPool *pool, CUdevice dev, CUmemoryPool (*which)(CUdevice))
{
    unsigned gpu;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process_find_gpu(dev, &gpu))
        return which == pool_default ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *pool = which(dev);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetDefaultMemPool, PROCESS_SAFE);

    return result ? result : process_leave(pool_get(pool_out, dev, pool_default));
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetMemPool, PROCESS_SAFE);

    return result ? result : process_leave(pool_get(pool, dev, pool_of_device));
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    CUresult result = process_enter(SYMBOL_cuDeviceSetMemPool, PROCESS_UNSAFE);
    unsigned gpu;

    if (result)
        return result;
    if (!process_find_gpu(dev, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!pool_is_usable(pool) || !pool_is_paid(pool) || pool->location.id != dev)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    pool_set_of_device(dev, pool);
    return process_leave(CUDA_SUCCESS);
}
