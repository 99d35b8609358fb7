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

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    if (!entry_enter())
        return real.cuMemPoolCreate(pool, poolProps);
    CUresult result = real.cuMemPoolCreate(pool, poolProps);
    if (result == CUDA_SUCCESS) {
        bool is_device = poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        limit_pool_created((uint64_t)*pool, is_device ? poolProps->location.id : POOLS_HOST);
    }
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
