// SPDX-License-Identifier: MIT
//
// Stream-ordered memory and pools.

#include "conformance.h"

static CUmemPoolProps describe(CUmemAllocationType type, CUmemLocationType location)
{
    return (CUmemPoolProps){.allocType = type, .location = {.type = location}};
}

static cuuint64_t figure(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = SENTINEL;

    QUIET(cuMemPoolGetAttribute(pool, attribute, &value));
    return value / MIB;
}

static void keep(CUmemoryPool pool, cuuint64_t bytes)
{
    QUIET(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

void check_async(void)
{
    CUdeviceptr at, other;
    CUmemoryPool pool;

    section("stream-ordered memory");
    QUIET(cuDeviceGetDefaultMemPool(&pool, 0));
    CALL(cuMemAllocAsync(&at, 10 * MIB, stream));
    CALL(cuMemAllocAsync(&other, 10 * MIB, stream));
    NUMBER(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    NUMBER(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuMemFreeAsync(other, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemAllocAsync(&at, 33 * MIB, stream));
    CALL(cuMemFree_v2(at));
    CALL(cuMemPoolTrimTo(pool, 0));
    keep(pool, UINT64_MAX);
    CALL(cuMemAllocAsync(&at, 100 * MIB, stream));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemAllocAsync(&at, 50 * MIB, stream));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolTrimTo(pool, 0));
    keep(pool, 0);
    CALL(cuMemAlloc_v2(&at, 10 * MIB));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemAllocAsync(&at, MIB, NULL));
    CALL(cuMemFreeAsync(at, NULL));
    CALL(cuCtxSynchronize());
    at = SENTINEL;
    CALL(cuMemAllocAsync(&at, 0, stream));
    OUTPUT(at);
    at = SENTINEL;
    CALL(cuMemAllocAsync(&at, 64 * TIB, stream));
    OUTPUT(at);
    CALL(cuMemFreeAsync(0, stream));
    CALL(cuMemFreeAsync(12345, stream));
}

static void check_fragments(void)
{
    CUmemPoolProps props = describe(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
    CUdeviceptr at[16], more;
    CUmemoryPool pool;

    QUIET(cuMemPoolCreate(&pool, &props));
    keep(pool, UINT64_MAX);
    for (unsigned i = 0; i < 16; i++)
        QUIET(cuMemAllocFromPoolAsync(&at[i], 8 * MIB, pool, stream));
    for (unsigned i = 0; i < 16; i += 2)
        QUIET(cuMemFreeAsync(at[i], stream));
    QUIET(cuStreamSynchronize(stream));
    NUMBER(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    forget();
    CALL(cuMemAllocFromPoolAsync(&more, 32 * MIB, pool, stream));
    CALL(cuMemPoolDestroy(pool));
    for (unsigned i = 1; i < 16; i += 2)
        QUIET(cuMemFreeAsync(at[i], stream));
    QUIET(cuMemFreeAsync(more, stream));
    CALL(cuStreamSynchronize(stream));
}

void check_pools(void)
{
    CUmemPoolProps props = describe(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemoryPool pool = (CUmemoryPool)SENTINEL, by_default;
    CUdeviceptr at = SENTINEL;

    section("pools");
    props.maxSize = 64 * MIB;
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemAllocFromPoolAsync(&at, 100 * MIB, pool, stream));
    OUTPUT(at);
    CALL(cuMemAllocFromPoolAsync(&at, 60 * MIB, pool, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolDestroy(pool));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolDestroy(pool));
    QUIET(cuDeviceGetDefaultMemPool(&by_default, 0));
    CALL(cuMemPoolDestroy(by_default));
    check_fragments();
    props = describe(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemAllocFromPoolAsync(&at, 40 * MIB, pool, stream));
    NUMBER(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolDestroy(pool));
    pool = (CUmemoryPool)SENTINEL;
    props = describe(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_INVALID);
    CALL(cuMemPoolCreate(&pool, &props));
    props = describe(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE);
    props.maxSize = 64 * MIB;
    CALL(cuMemPoolCreate(&pool, &props));
    props = describe(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
    props.location.id = 99;
    CALL(cuMemPoolCreate(&pool, &props));
    OUTPUT(pool);
    CALL(cuDeviceGetMemPool(&pool, 0));
    NUMBER(pool == by_default);
    CALL(cuDeviceGetMemPool(&pool, 99));
    CALL(cuDeviceGetDefaultMemPool(&pool, 99));

    section("which pool a location uses");
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                  host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                  none = {.type = CU_MEM_LOCATION_TYPE_NONE};
    CALL(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    NUMBER(pool == by_default);
    CALL(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    NUMBER(pool == by_default);
    CALL(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    CALL(cuMemGetDefaultMemPool(&pool, &none, CU_MEM_ALLOCATION_TYPE_MANAGED));
    CALL(cuMemGetDefaultMemPool(&pool, &none, CU_MEM_ALLOCATION_TYPE_PINNED));
    CALL(cuMemGetMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    CALL(cuMemPoolCreate(
        &pool, &(CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device}));
    CALL(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    CALL(cuMemAllocAsync(&at, 40 * MIB, stream));
    NUMBER(figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    CALL(cuMemFreeAsync(at, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    CALL(cuMemPoolDestroy(pool));
    CALL(cuMemGetMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    NUMBER(pool == by_default);
}
