/* SPDX-License-Identifier: MIT
 *
 * The roads by contexts: what outlives them, and what they take for themselves.
 */
#include "roads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The context goes, and with it what it held, but not what pools and handles hold. */
void roads_walk_reset(struct hoard *hoard)
{
    CUdevice device = 0;
    for (unsigned round = 0; round < 3; round++) {
        struct hoard kept = {0};
        for (unsigned i = 0; i < 3 && roads_wants_more(hoard); i++) {
            uint64_t got = 0;
            CUresult result = i % 2 ? roads_pool(128 * MIB, &got) : roads_vmm(128 * MIB, &got);
            roads_note(&kept, result, got, "a piece");
        }
        hoard->held_bytes += kept.held_bytes;
        roads_must(cu.cuDevicePrimaryCtxReset_v2(device), "cuDevicePrimaryCtxReset");
        if (!roads_start_context(hoard))
            return;
    }
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Part of the device's processors as a context of its own, with streams of its own. */
void roads_walk_green(struct hoard *hoard)
{
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext context;
    CUstream stream;
    CUdeviceptr address;
    memset(&resource, 0, sizeof resource);
    roads_must(cu.cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM),
               "cuDeviceGetDevResource");
    roads_must(cu.cuDevResourceGenerateDesc(&description, &resource, 1),
               "cuDevResourceGenerateDesc");
    roads_must(cu.cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
               "cuGreenCtxCreate");
    roads_must(cu.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0),
               "cuGreenCtxStreamCreate");
    roads_must(cu.cuCtxFromGreenCtx(&context, green), "cuCtxFromGreenCtx");
    roads_must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (size_t bytes = 100 * MIB; roads_wants_more(hoard);) {
        bool got = roads_note(hoard, cu.cuMemAllocAsync(&address, bytes, stream), bytes,
                              "cuMemAllocAsync");
        got = roads_note(hoard, cu.cuMemAlloc_v2(&address, bytes), bytes, "cuMemAlloc") && got;
        if (!got && bytes > MIB)
            bytes /= 2;
    }
}

/* Contexts are worth some hundred MiB each. */
void roads_walk_contexts(struct hoard *hoard)
{
    enum { CONTEXTS = 8 };
    CUcontext context;
    for (unsigned i = 0; i < CONTEXTS && roads_wants_more(hoard); i++)
        roads_note(hoard, cu.cuCtxCreate_v2(&context, 0, 0), 0, "cuCtxCreate");
    roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Memory that needs no context, and the context last of all. */
void roads_walk_retain(struct hoard *hoard)
{
    enum { PIECES = 1024, GIVEN_MIB = 700 };
    static CUmemGenericAllocationHandle handles[PIECES];
    unsigned used = 0;
    uint64_t given = 0;
    for (size_t bytes = 256 * MIB; used < PIECES && roads_wants_more(hoard);) {
        CUresult result = roads_create(bytes, CU_MEM_HANDLE_TYPE_NONE, &handles[used]);
        if (roads_note(hoard, result, bytes, "cuMemCreate"))
            used++;
        else
            bytes = bytes / 2 < 2 * MIB ? 2 * MIB : bytes / 2;
    }
    if (roads_start_context(hoard)) {
        fputs("roads: a context fits beside a full limit\n", stderr);
        return;
    }
    hoard->in_a_row = 0;
    /* The largest ones came first. */
    for (unsigned i = 0; i < used && given < GIVEN_MIB * MIB; i++) {
        roads_must(cu.cuMemRelease(handles[i]), "cuMemRelease");
        given += 256 * MIB;
    }
    hoard->held_bytes -= given;
    if (roads_start_context(hoard))
        roads_take_all(hoard, roads_vmm, 256 * MIB, 2 * MIB);
}

enum { CHURN_THREADS = 8, CHURN_PIECES = 12, CHURN_SECONDS = 3 };

static _Atomic unsigned churn_refusals;

static void note_churn(CUresult result, const char *what)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        churn_refusals++;
    else
        roads_must(result, what);
}

static void churn_context(void)
{
    CUcontext context;
    CUresult result = cu.cuCtxCreate_v2(&context, 0, 0);
    note_churn(result, "cuCtxCreate");
    if (result == CUDA_SUCCESS)
        roads_must(cu.cuCtxDestroy_v2(context), "cuCtxDestroy");
}

static void churn_memory(CUdeviceptr *piece, unsigned *seed)
{
    if (*piece) {
        roads_must(cu.cuMemFree_v2(*piece), "cuMemFree");
        *piece = 0;
    } else {
        size_t bytes = (1 + (size_t)rand_r(seed) % 40) * MIB;
        note_churn(cu.cuMemAlloc_v2(piece, bytes), "cuMemAlloc");
    }
}

static void *run_churn(void *argument)
{
    CUdeviceptr pieces[CHURN_PIECES] = {0};
    struct timespec start, now;
    unsigned seed = (unsigned)(uintptr_t)argument;
    bool makes_contexts = seed % 2;
    clock_gettime(CLOCK_MONOTONIC, &start);
    roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
    do {
        if (makes_contexts)
            churn_context();
        else
            churn_memory(&pieces[rand_r(&seed) % CHURN_PIECES], &seed);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < CHURN_SECONDS);
    return NULL;
}

/* Threads that make contexts and destroy them, while others allocate; then what is left. */
void roads_walk_context_churn(struct hoard *hoard)
{
    pthread_t threads[CHURN_THREADS];
    for (uintptr_t i = 0; i < CHURN_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, run_churn, (void *)i))
            roads_skip("no threads");
    }
    for (unsigned i = 0; i < CHURN_THREADS; i++)
        pthread_join(threads[i], NULL);
    hoard->refusals = churn_refusals;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}
