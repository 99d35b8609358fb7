/* SPDX-License-Identifier: MIT
 *
 * The roads by calls that allocate: linear, managed, stream-ordered, virtual memory management,
 * arrays; and some by which a count could be lost.
 */
#include "roads.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};

CUresult roads_linear(size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    *got_bytes = bytes;
    return cu.cuMemAlloc_v2(&address, bytes);
}

/* Rows as wide as makes the driver pad them. */
CUresult roads_pitch(size_t bytes, uint64_t *got_bytes)
{
    enum { ROW_BYTES = 100001 };
    CUdeviceptr address;
    size_t pitch = 0, rows = bytes / ROW_BYTES;
    CUresult result = cu.cuMemAllocPitch_v2(&address, &pitch, ROW_BYTES, rows, 16);
    *got_bytes = pitch * rows;
    return result;
}

/* Touched on the GPU, or it would not be there. */
static CUresult touch(CUdeviceptr address, size_t bytes)
{
    CUresult result = cu.cuMemsetD8_v2(address, 1, bytes);
    return result == CUDA_SUCCESS ? cu.cuCtxSynchronize() : result;
}

CUresult roads_managed(size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    CUresult result = cu.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);
    *got_bytes = bytes;
    return result == CUDA_SUCCESS ? touch(address, bytes) : result;
}

CUmemoryPool roads_new_pool(CUmemAllocationType type, CUmemLocationType location,
                            CUmemAllocationHandleType handles)
{
    CUmemoryPool pool;
    CUmemPoolProps props;
    cuuint64_t keep = UINT64_MAX;
    memset(&props, 0, sizeof props);
    props.allocType = type;
    props.location.type = location;
    props.handleTypes = handles;
    roads_must_have(cu.cuMemPoolCreate(&pool, &props), "a pool of this kind");
    roads_must(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
               "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD");
    return pool;
}

static CUmemoryPool device_pool(void)
{
    return roads_new_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE,
                          CU_MEM_HANDLE_TYPE_NONE);
}

static CUresult take_touched(CUmemoryPool from, size_t bytes, uint64_t *got_bytes)
{
    CUdeviceptr address;
    CUresult result = cu.cuMemAllocFromPoolAsync(&address, bytes, from, roads_streams[0]);
    *got_bytes = bytes;
    if (result != CUDA_SUCCESS)
        return result;
    roads_must(cu.cuStreamSynchronize(roads_streams[0]), "cuStreamSynchronize");
    return touch(address, bytes);
}

/* At no place: it can be anywhere, and is where it is touched. */
CUresult roads_managed_pool(size_t bytes, uint64_t *got_bytes)
{
    static CUmemoryPool pool;
    if (!pool)
        pool = roads_new_pool(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_NONE,
                              CU_MEM_HANDLE_TYPE_NONE);
    return take_touched(pool, bytes, got_bytes);
}

CUresult roads_managed_pool_here(size_t bytes, uint64_t *got_bytes)
{
    static CUmemoryPool pool;
    if (!pool)
        pool = roads_new_pool(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE,
                              CU_MEM_HANDLE_TYPE_NONE);
    return take_touched(pool, bytes, got_bytes);
}

/* A pool that the program never made. */
CUresult roads_managed_pool_default(size_t bytes, uint64_t *got_bytes)
{
    static CUmemoryPool pool;
    CUmemLocation location = here;
    if (!pool)
        roads_must_have(cu.cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED),
                        "cuMemGetDefaultMemPool");
    return take_touched(pool, bytes, got_bytes);
}

/* Memory of malloc, which some systems move to the GPU as they do managed memory. */
CUresult roads_pageable(size_t bytes, uint64_t *got_bytes)
{
    int can = 0;
    roads_must(cu.cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0),
               "cuDeviceGetAttribute");
    if (!can)
        roads_skip("the GPU does not reach pageable memory");
    void *memory = calloc(1, bytes);
    *got_bytes = bytes;
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(memory, 1, bytes);
    CUresult result =
        cu.cuMemPrefetchAsync_v2((CUdeviceptr)memory, bytes, here, 0, roads_streams[0]);
    return result == CUDA_SUCCESS ? cu.cuStreamSynchronize(roads_streams[0]) : result;
}

CUresult roads_async(size_t bytes, uint64_t *got_bytes)
{
    static unsigned turn;
    const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, roads_streams[0]};
    CUdeviceptr address;
    *got_bytes = bytes;
    return cu.cuMemAllocAsync(&address, bytes, streams[turn++ % 4]);
}

CUresult roads_pool(size_t bytes, uint64_t *got_bytes)
{
    static CUmemoryPool pool;
    CUdeviceptr address;
    if (!pool)
        pool = device_pool();
    *got_bytes = bytes;
    return cu.cuMemAllocFromPoolAsync(&address, bytes, pool, roads_streams[0]);
}

CUresult roads_pools(size_t bytes, uint64_t *got_bytes)
{
    enum { POOLS = 16 };
    static CUmemoryPool pools[POOLS];
    static unsigned turn;
    CUdeviceptr address;
    unsigned now = turn++ % POOLS;
    if (!pools[now])
        pools[now] = device_pool();
    *got_bytes = bytes;
    return cu.cuMemAllocFromPoolAsync(&address, bytes, pools[now],
                                      roads_streams[now % ROADS_STREAMS]);
}

/* Full of small pieces, every second one freed: half of the pool is free, but no hole holds what is
 * asked for then. */
void roads_walk_fragments(struct hoard *hoard)
{
    enum { PIECES = 1024, STEP_MIB = 12, LAST_MIB = 180 };
    static struct {
        CUdeviceptr address;
        size_t bytes;
    } pieces[PIECES];
    unsigned used = 0;
    CUmemoryPool pool = device_pool();
    for (size_t bytes = STEP_MIB * MIB; bytes <= LAST_MIB * MIB; bytes += STEP_MIB * MIB) {
        for (unsigned i = 0; i < used; i++) {
            roads_must(cu.cuMemFreeAsync(pieces[i].address, roads_streams[0]), "cuMemFreeAsync");
            hoard->held_bytes -= pieces[i].bytes;
            pieces[i] = pieces[--used];
        }
        if (bytes / MIB / STEP_MIB % 2)
            roads_must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
        hoard->in_a_row = 0;
        while (used < PIECES && hoard->in_a_row < 4 && roads_wants_more(hoard)) {
            CUresult result = cu.cuMemAllocFromPoolAsync(&pieces[used].address, bytes, pool,
                                                         roads_streams[hoard->in_a_row % 2]);
            pieces[used].bytes = bytes;
            used += roads_note(hoard, result, bytes, "cuMemAllocFromPoolAsync");
        }
    }
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* A pool that is gone here, while somebody could still import it. */
void roads_walk_pool_exported(struct hoard *hoard)
{
    while (roads_wants_more(hoard)) {
        int descriptor;
        CUdeviceptr address;
        CUmemoryPool pool =
            roads_new_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE,
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        roads_must(cu.cuMemPoolExportToShareableHandle(&descriptor, pool,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   "cuMemPoolExportToShareableHandle");
        CUresult result = cu.cuMemAllocFromPoolAsync(&address, 256 * MIB, pool, roads_streams[0]);
        /* As if it stayed: if it does not, that is no escape, and the outside sees it. */
        if (roads_note(hoard, result, 256 * MIB, "cuMemAllocFromPoolAsync"))
            roads_must(cu.cuMemFreeAsync(address, roads_streams[0]), "cuMemFreeAsync");
        roads_must(cu.cuMemPoolDestroy(pool), "cuMemPoolDestroy");
        roads_must(cu.cuStreamSynchronize(roads_streams[0]), "cuStreamSynchronize");
    }
}

/* Linear memory freed in stream order is held until the stream is synchronised. */
void roads_walk_freed_later(struct hoard *hoard)
{
    size_t bytes = 100 * MIB;
    while (roads_wants_more(hoard)) {
        CUdeviceptr address;
        CUresult result = cu.cuMemAlloc_v2(&address, bytes);
        if (roads_note(hoard, result, bytes, "cuMemAlloc"))
            roads_must(cu.cuMemFreeAsync(address, roads_streams[0]), "cuMemFreeAsync");
        else
            bytes = bytes / 2 < MIB ? MIB : bytes / 2;
    }
}

static CUresult create(size_t bytes, CUmemAllocationHandleType handles, unsigned short usage,
                       CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = here;
    prop.requestedHandleTypes = handles;
    prop.allocFlags.usage = usage;
    return cu.cuMemCreate(handle, bytes, &prop, 0);
}

CUresult roads_create(size_t bytes, CUmemAllocationHandleType handles,
                      CUmemGenericAllocationHandle *handle)
{
    return create(bytes, handles, 0, handle);
}

static CUresult create_mapped(size_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUdeviceptr address;
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = roads_create(bytes, CU_MEM_HANDLE_TYPE_NONE, handle);
    if (result != CUDA_SUCCESS)
        return result;
    roads_must(cu.cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
    roads_must(cu.cuMemMap(address, bytes, 0, *handle, 0), "cuMemMap");
    roads_must(cu.cuMemSetAccess(address, bytes, &access, 1), "cuMemSetAccess");
    return touch(address, bytes);
}

CUresult roads_vmm(size_t bytes, uint64_t *got_bytes)
{
    CUmemGenericAllocationHandle handle;
    *got_bytes = bytes;
    return roads_create(bytes, CU_MEM_HANDLE_TYPE_NONE, &handle);
}

CUresult roads_vmm_mapped(size_t bytes, uint64_t *got_bytes)
{
    CUmemGenericAllocationHandle handle;
    *got_bytes = bytes;
    return create_mapped(bytes, &handle);
}

CUresult roads_vmm_released(size_t bytes, uint64_t *got_bytes)
{
    CUmemGenericAllocationHandle handle;
    CUresult result = create_mapped(bytes, &handle);
    *got_bytes = bytes;
    return result == CUDA_SUCCESS ? cu.cuMemRelease(handle) : result;
}

CUresult roads_vmm_exported(size_t bytes, uint64_t *got_bytes)
{
    int descriptor;
    CUmemGenericAllocationHandle handle;
    CUresult result = roads_create(bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &handle);
    *got_bytes = bytes;
    if (result != CUDA_SUCCESS)
        return result;
    roads_must(cu.cuMemExportToShareableHandle(&descriptor, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle");
    return cu.cuMemRelease(handle);
}

/* The descriptor that was handed out is closed, as by a program that has sent it to another. */
CUresult roads_vmm_exported_twin(size_t bytes, uint64_t *got_bytes)
{
    int descriptor;
    CUmemGenericAllocationHandle handle;
    CUresult result = roads_create(bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &handle);
    *got_bytes = bytes;
    if (result != CUDA_SUCCESS)
        return result;
    roads_must(cu.cuMemExportToShareableHandle(&descriptor, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle");
    if (dup(descriptor) < 0)
        roads_skip("no more descriptors");
    close(descriptor);
    return cu.cuMemRelease(handle);
}

/* Freed while a descriptor of the kernel's own kind is open on it. */
CUresult roads_linear_exported(size_t bytes, uint64_t *got_bytes)
{
    int descriptor;
    CUdeviceptr address;
    CUresult result = cu.cuMemAlloc_v2(&address, bytes);
    *got_bytes = bytes;
    if (result != CUDA_SUCCESS)
        return result;
    roads_must_have(cu.cuMemGetHandleForAddressRange(&descriptor, address, bytes,
                                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                    "cuMemGetHandleForAddressRange");
    return cu.cuMemFree_v2(address);
}

/* A handle released while its memory is mapped into a sparse array instead of an address. */
CUresult roads_vmm_in_array(size_t bytes, uint64_t *got_bytes)
{
    enum { TEXEL_BYTES = 16, WIDTH = 2048 };
    CUarray array;
    CUmemGenericAllocationHandle handle;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = WIDTH,
                                          .Height = bytes / TEXEL_BYTES / WIDTH,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4,
                                          .Flags = CUDA_ARRAY3D_SPARSE};
    CUarrayMapInfo map;
    *got_bytes = bytes;
    CUresult result =
        create(bytes, CU_MEM_HANDLE_TYPE_NONE, CU_MEM_CREATE_USAGE_TILE_POOL, &handle);
    if (result != CUDA_SUCCESS)
        return result;
    roads_must_have(cu.cuArray3DCreate_v2(&array, &descriptor), "a sparse array");
    memset(&map, 0, sizeof map);
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = array;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.extentWidth = (unsigned)descriptor.Width;
    map.subresource.sparseLevel.extentHeight = (unsigned)descriptor.Height;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = handle;
    map.deviceBitMask = 1;
    roads_must_have(cu.cuMemMapArrayAsync(&map, 1, roads_streams[0]), "cuMemMapArrayAsync");
    roads_must(cu.cuStreamSynchronize(roads_streams[0]), "cuStreamSynchronize");
    return cu.cuMemRelease(handle);
}

static CUresult new_array(size_t width, size_t height, size_t depth, unsigned flags)
{
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = width,
                                          .Height = height,
                                          .Depth = depth,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 4,
                                          .Flags = flags};
    return cu.cuArray3DCreate_v2(&array, &descriptor);
}

CUresult roads_array(size_t bytes, uint64_t *got_bytes)
{
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = 512, .Height = bytes / 4 / 512, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    *got_bytes = bytes;
    return cu.cuArrayCreate_v2(&array, &descriptor);
}

CUresult roads_array_tiny(size_t bytes, uint64_t *got_bytes)
{
    *got_bytes = bytes;
    return new_array(bytes / 16, 0, 0, 0);
}

CUresult roads_array_3d(size_t bytes, uint64_t *got_bytes)
{
    *got_bytes = bytes;
    return new_array(128, 128, bytes / 16 / 128 / 128, 0);
}

CUresult roads_array_layered(size_t bytes, uint64_t *got_bytes)
{
    *got_bytes = bytes;
    return new_array(128, 128, bytes / 16 / 128 / 128, CUDA_ARRAY3D_LAYERED);
}

CUresult roads_array_mipmapped(size_t bytes, uint64_t *got_bytes)
{
    CUmipmappedArray array;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 4096, .Height = bytes / 16 / 4096, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    *got_bytes = bytes + bytes / 3;
    return cu.cuMipmappedArrayCreate(&array, &descriptor, 5);
}
