/* SPDX-License-Identifier: MIT
 *
 * A program that wants more GPU memory than its limit, by one road, as greedily as it can. Case of
 * tests/gpu/escape: whether it got more is seen from outside, in NVML, not by what it says of
 * itself.
 *
 *   usage: roads ROAD [FOLDER]
 *
 * FOLDER has global.fatbin, which nvcc built of roads_global.cu. Prints HELD when it can get no
 * more, and waits for a line on standard input. Ends without freeing anything.
 */
#define _GNU_SOURCE
#include "roads.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 20, SKIPPED = 77 };

struct roads_driver cu;
CUcontext roads_context;
CUstream roads_streams[ROADS_STREAMS];
static struct timespec started;

static const char *images_folder;

#define TAKES(_name, _take, _largest, _smallest)                                                   \
    {                                                                                              \
        _name, _take, _largest, _smallest, NULL, true                                              \
    }
#define WALKS(_name, _walk)                                                                        \
    {                                                                                              \
        _name, NULL, 0, 0, _walk, true                                                             \
    }
#define STARTS(_name, _walk)                                                                       \
    {                                                                                              \
        _name, NULL, 0, 0, _walk, false                                                            \
    }

static const struct road {
    const char *name;
    roads_take *take; /* pieces of largest down to smallest */
    size_t largest, smallest;
    void (*walk)(struct hoard *hoard); /* or a way of its own */
    bool has_context;                  /* from the start */
} roads[] = {
    TAKES("linear-4k", roads_linear, 4096, 4096),
    TAKES("linear-1m", roads_linear, MIB, MIB),
    TAKES("linear", roads_linear, 300 * MIB, MIB),
    TAKES("pitch", roads_pitch, 300 * MIB, MIB),
    TAKES("managed", roads_managed, 256 * MIB, MIB),
    TAKES("managed-pool", roads_managed_pool, 256 * MIB, MIB),
    TAKES("managed-pool-here", roads_managed_pool_here, 256 * MIB, MIB),
    TAKES("managed-default", roads_managed_pool_default, 256 * MIB, MIB),
    TAKES("pageable", roads_pageable, 256 * MIB, MIB),
    TAKES("async", roads_async, 300 * MIB, MIB),
    TAKES("pool", roads_pool, 300 * MIB, MIB),
    TAKES("pools", roads_pools, 100 * MIB, MIB),
    WALKS("pool-fragments", roads_walk_fragments),
    WALKS("pool-exported", roads_walk_pool_exported),
    TAKES("linear-exported", roads_linear_exported, 256 * MIB, 2 * MIB),
    WALKS("freed-later", roads_walk_freed_later),
    TAKES("vmm", roads_vmm, 256 * MIB, 2 * MIB),
    TAKES("vmm-mapped", roads_vmm_mapped, 256 * MIB, 2 * MIB),
    TAKES("vmm-released", roads_vmm_released, 256 * MIB, 2 * MIB),
    TAKES("vmm-exported", roads_vmm_exported, 256 * MIB, 2 * MIB),
    TAKES("vmm-exported-twin", roads_vmm_exported_twin, 256 * MIB, 2 * MIB),
    TAKES("vmm-in-array", roads_vmm_in_array, 64 * MIB, 64 * MIB),
    TAKES("array-1m", roads_array, MIB, MIB),
    TAKES("array-tiny", roads_array_tiny, 64, 64),
    TAKES("array-3d", roads_array_3d, 256 * MIB, MIB),
    TAKES("array-mipmapped", roads_array_mipmapped, 256 * MIB, MIB),
    TAKES("array-layered", roads_array_layered, 256 * MIB, MIB),
    TAKES("graph", roads_graph, 300 * MIB, MIB),
    TAKES("graph-captured", roads_graph_captured, 300 * MIB, MIB),
    TAKES("graph-auto-free", roads_graph_auto_free, 300 * MIB, MIB),
    WALKS("graph-untrimmed", roads_walk_graph_untrimmed),
    WALKS("graph-shared", roads_walk_graph_shared),
    WALKS("graph-streams", roads_walk_graph_streams),
    WALKS("graph-update", roads_walk_graph_update),
    WALKS("reset", roads_walk_reset),
    WALKS("green", roads_walk_green),
    WALKS("contexts", roads_walk_contexts),
    TAKES("modules", roads_module, 256 * MIB, 2 * MIB),
    WALKS("stack", roads_walk_stack),
    WALKS("context-churn", roads_walk_context_churn),
    STARTS("retain", roads_walk_retain),
    WALKS("streams", roads_walk_streams),
    WALKS("heap", roads_walk_heap),
    WALKS("late-local", roads_walk_late_local),
    WALKS("late-global", roads_walk_late_global),
    WALKS("late-fatbin", roads_walk_late_fatbin),
    WALKS("mix", roads_walk_mix),
};

void roads_skip(const char *why)
{
    printf("%s\n", why);
    fflush(stdout);
    _exit(SKIPPED);
}

static _Noreturn void skip_call(const char *what)
{
    char why[96];
    snprintf(why, sizeof why, "not supported here: %s", what);
    roads_skip(why);
}

void roads_must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        skip_call(what);
    fprintf(stderr, "roads: %s: error %d\n", what, (int)result);
    fflush(stderr);
    _exit(1);
}

void roads_must_have(CUresult result, const char *what)
{
    if (result == CUDA_ERROR_INVALID_VALUE)
        skip_call(what);
    roads_must(result, what);
}

bool roads_wants_more(const struct hoard *hoard)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return hoard->in_a_row < ROADS_ENOUGH_REFUSALS && hoard->held_bytes < ROADS_CAP_BYTES &&
           now.tv_sec - started.tv_sec < SECONDS;
}

bool roads_note(struct hoard *hoard, CUresult result, uint64_t got_bytes, const char *what)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        hoard->refusals++;
        hoard->in_a_row++;
        return false;
    }
    roads_must(result, what);
    hoard->held_bytes += got_bytes;
    hoard->in_a_row = 0;
    return true;
}

void roads_take_all(struct hoard *hoard, roads_take *take, size_t largest, size_t smallest)
{
    size_t bytes = largest;
    while (roads_wants_more(hoard)) {
        uint64_t got = bytes;
        CUresult result = take(bytes, &got);
        if (!roads_note(hoard, result, got, "a piece"))
            bytes = bytes / 2 < smallest ? smallest : bytes / 2;
    }
}

static CUresult missing(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        roads_skip(dlerror());
        /* Stored through void **, as dlsym's manual page does: C has no conversion between the two.
         */
#define RESOLVE(_symbol, _pfn)                                                                     \
    *(void **)&cu._symbol = dlsym(driver, #_symbol);                                               \
    if (!cu._symbol)                                                                               \
        cu._symbol = (PFN_##_pfn)(void (*)(void))missing;
    ROADS_CALLS(RESOLVE)
#undef RESOLVE
}

static void wait_for_line(void)
{
    fflush(stdout);
    int c;
    do
        c = getchar();
    while (c != '\n' && c != EOF);
}

/* What the driver loads for its own kernels is not to come late. The simulated GPU fills no host
 * memory, hence no look at the result. */
static void launch_something(void)
{
    void *host;
    roads_must(cu.cuMemHostAlloc(&host, MIB, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    (void)cu.cuMemsetD8_v2((CUdeviceptr)host, 1, MIB);
    roads_must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

bool roads_start_context(struct hoard *hoard)
{
    CUresult result = cu.cuDevicePrimaryCtxRetain(&roads_context, 0);
    if (!roads_note(hoard, result, 0, "cuDevicePrimaryCtxRetain"))
        return false;
    roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
    for (int i = 0; i < ROADS_STREAMS; i++) {
        result = cu.cuStreamCreate(&roads_streams[i], CU_STREAM_NON_BLOCKING);
        if (!roads_note(hoard, result, 0, "cuStreamCreate"))
            return false;
    }
    return true;
}

const void *roads_image(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", images_folder ? images_folder : ".", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        roads_skip("there was no nvcc to build the code for it");
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    void *image = malloc((size_t)bytes + 1);
    if (!image || fread(image, 1, (size_t)bytes, file) != (size_t)bytes)
        roads_skip("its code cannot be read");
    fclose(file);
    return image;
}

static void get_ready(void)
{
    CUdevice device;
    load_driver();
    CUresult result = cu.cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        roads_skip("there is no GPU");
    roads_must(result, "cuInit");
    roads_must(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
}

int main(int argc, char **argv)
{
    const struct road *road = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof roads / sizeof roads[0]; i++) {
        if (strcmp(argv[1], roads[i].name) == 0)
            road = &roads[i];
    }
    if (!road) {
        fputs("usage: roads ROAD [FOLDER]\n", stderr);
        return 2;
    }
    images_folder = argc > 2 ? argv[2] : NULL;
    get_ready();

    struct hoard hoard = {.got_after = -1};
    clock_gettime(CLOCK_MONOTONIC, &started);
    if (road->has_context) {
        if (!roads_start_context(&hoard))
            roads_must(CUDA_ERROR_OUT_OF_MEMORY, "the first context");
        launch_something();
    }
    if (road->walk)
        road->walk(&hoard);
    else
        roads_take_all(&hoard, road->take, road->largest, road->smallest);
    /* Not synchronised: that would give back what was freed in stream order. */
    printf("HELD {\"held\": %llu, \"refusals\": %u, \"got_after\": %d}\n",
           (unsigned long long)hoard.held_bytes, hoard.refusals, hoard.got_after);
    wait_for_line();
    _exit(0);
}
