/* SPDX-License-Identifier: MIT
 *
 * The road by all roads at once: threads that take and free at random for some seconds, so that a
 * count that is taken twice or too late shows.
 */
#include "roads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, PIECES = 64, MIX_SECONDS = 5 };

enum way { LINEAR, PITCH, ASYNC, POOL, VMM, ARRAY, GRAPH, WAYS };

struct piece {
    enum way way;
    uint64_t bytes; /* 0: none */
    union {
        CUdeviceptr address;
        CUmemGenericAllocationHandle handle;
        CUarray array;
    } as;
};

static CUmemoryPool pool;
static _Atomic int64_t held_bytes;
static _Atomic unsigned refusals;

/* A graph of its own each time: what it takes it keeps until the device is trimmed. */
static CUresult run_graph(size_t bytes, CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr address;
    roads_must(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
               "cuStreamBeginCapture");
    roads_must(cu.cuMemAllocAsync(&address, bytes, stream), "cuMemAllocAsync in a capture");
    roads_must(cu.cuMemFreeAsync(address, stream), "cuMemFreeAsync in a capture");
    roads_must(cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    roads_must(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
    CUresult result = cu.cuGraphLaunch(exec, stream);
    roads_must(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    cu.cuGraphExecDestroy(exec);
    cu.cuGraphDestroy(graph);
    return result;
}

static CUresult take(struct piece *piece, CUstream stream)
{
    size_t pitch, bytes = piece->bytes;
    CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = 512, .Height = bytes / 8192, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    switch (piece->way) {
    case LINEAR:
        return cu.cuMemAlloc_v2(&piece->as.address, bytes);
    case PITCH:
        return cu.cuMemAllocPitch_v2(&piece->as.address, &pitch, 4000, bytes / 4096, 16);
    case ASYNC:
        return cu.cuMemAllocAsync(&piece->as.address, bytes, stream);
    case POOL:
        return cu.cuMemAllocFromPoolAsync(&piece->as.address, bytes, pool, stream);
    case VMM:
        return roads_create(bytes, CU_MEM_HANDLE_TYPE_NONE, &piece->as.handle);
    case ARRAY:
        return cu.cuArrayCreate_v2(&piece->as.array, &descriptor);
    default:
        return run_graph(bytes, stream);
    }
}

/* What a graph has taken and freed is the driver's to keep: nobody holds it. */
static int64_t counted(const struct piece *piece)
{
    return piece->way == GRAPH ? 0 : (int64_t)piece->bytes;
}

static void give(struct piece *piece, CUstream stream, unsigned *seed)
{
    CUresult result = CUDA_SUCCESS;
    switch (piece->way) {
    case LINEAR:
    case PITCH:
        result = rand_r(seed) % 4 ? cu.cuMemFree_v2(piece->as.address)
                                  : cu.cuMemFreeAsync(piece->as.address, stream);
        break;
    case ASYNC:
    case POOL:
        result = cu.cuMemFreeAsync(piece->as.address, stream);
        break;
    case VMM:
        result = cu.cuMemRelease(piece->as.handle);
        break;
    case ARRAY:
        result = cu.cuArrayDestroy(piece->as.array);
        break;
    default:
        if (rand_r(seed) % 8 == 0)
            result = cu.cuDeviceGraphMemTrim(0);
        break;
    }
    roads_must(result, "a free");
    held_bytes -= counted(piece);
    piece->bytes = 0;
}

static bool is_over(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - start->tv_sec >= MIX_SECONDS || held_bytes > (int64_t)ROADS_CAP_BYTES;
}

static void *run_thread(void *argument)
{
    struct piece pieces[PIECES] = {0};
    struct timespec start;
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUstream stream = roads_streams[seed % ROADS_STREAMS];
    clock_gettime(CLOCK_MONOTONIC, &start);
    roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
    while (!is_over(&start)) {
        struct piece *piece = &pieces[rand_r(&seed) % PIECES];
        if (piece->bytes) {
            give(piece, stream, &seed);
            continue;
        }
        piece->way = (enum way)(rand_r(&seed) % WAYS);
        piece->bytes = 2 * MIB * (1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 16 : 64));
        CUresult result = take(piece, stream);
        if (result == CUDA_SUCCESS) {
            held_bytes += counted(piece);
            continue;
        }
        piece->bytes = 0;
        refusals++;
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            roads_must(result, "a piece");
    }
    return NULL;
}

void roads_walk_mix(struct hoard *hoard)
{
    pthread_t threads[THREADS];
    pool = roads_new_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE,
                          CU_MEM_HANDLE_TYPE_NONE);
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, run_thread, (void *)(i + 1)))
            roads_skip("no threads");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    hoard->held_bytes = (uint64_t)held_bytes;
    hoard->refusals = refusals;
}
