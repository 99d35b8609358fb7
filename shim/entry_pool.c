/* SPDX-License-Identifier: MIT
 *
 * Memory pools as such: created, destroyed, trimmed, their release threshold set. None asks for
 * memory; all change what a pool may keep.
 */
#include "driver.h"
#include "entry.h"
#include "limit_pools.h"

static void entry_reread(CUmemoryPool pool)
{
    struct pool_reading reading;
    if (driver_read_pool(pool, &reading))
        limit_pool_update((uint64_t)pool, &reading);
}

/* The device that pays for a pool, or POOLS_HOST. All of managed memory can become resident on a
 * device, wherever its pool is said to be: then the current one pays. */
static int entry_payer(CUmemAllocationType type, const CUmemLocation *location)
{
    CUdevice device = 0;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return location->id;
    if (type != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return POOLS_HOST;
    real.cuCtxGetDevice(&device);
    return device;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    if (!entry_enter())
        return real.cuMemPoolCreate(pool, poolProps);
    CUresult result = real.cuMemPoolCreate(pool, poolProps);
    if (result == CUDA_SUCCESS)
        limit_pool_created((uint64_t)*pool, entry_payer(poolProps->allocType, &poolProps->location),
                           poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!entry_enter())
        return real.cuMemPoolDestroy(pool);
    limit_pool_detach((uint64_t)pool);
    CUresult result = real.cuMemPoolDestroy(pool);
    if (result == CUDA_SUCCESS)
        limit_pool_release((uint64_t)pool);
    else
        limit_pool_restore((uint64_t)pool);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    if (!entry_enter())
        return real.cuMemPoolTrimTo(pool, minBytesToKeep);
    CUresult result = real.cuMemPoolTrimTo(pool, minBytesToKeep);
    if (result == CUDA_SUCCESS)
        entry_reread(pool);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!entry_enter())
        return real.cuMemPoolSetAttribute(pool, attr, value);
    CUresult result = real.cuMemPoolSetAttribute(pool, attr, value);
    if (result == CUDA_SUCCESS)
        entry_reread(pool);
    guard_leave();
    return result;
}

/* A pool of managed memory that nobody created: allocations from it say nothing of a device. */
static void entry_meet(CUmemoryPool pool, CUmemAllocationType type, const CUmemLocation *location)
{
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        limit_pool_created((uint64_t)pool, entry_payer(type, location), true);
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    if (!entry_enter())
        return real.cuMemGetDefaultMemPool(pool_out, location, type);
    CUresult result = real.cuMemGetDefaultMemPool(pool_out, location, type);
    if (result == CUDA_SUCCESS)
        entry_meet(*pool_out, type, location);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    if (!entry_enter())
        return real.cuMemGetMemPool(pool_out, location, type);
    CUresult result = real.cuMemGetMemPool(pool_out, location, type);
    if (result == CUDA_SUCCESS)
        entry_meet(*pool_out, type, location);
    guard_leave();
    return result;
}
