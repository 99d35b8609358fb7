/* SPDX-License-Identifier: MIT
 *
 * A native program for the scenarios: memory of every kind, of two GPUs and by two threads, each
 * from a function with a name. It says HOLD and waits for a line where it is to be looked at.
 *
 *   usage: solver            all of that
 *          solver stubborn   asks again and again for what it does not get
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#define MIB ((size_t)1 << 20)

/* Places that a stack can name: neither inlined nor left by a jump. */
#define PLACE __attribute__((noinline)) static void

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "solver: %s: error %d\n", what, (int)result);
        exit(1);
    }
}

static void hold(void)
{
    puts("HOLD");
    fflush(stdout);
    (void)!getchar(); /* NOLINT: at the end of input it goes on, too */
}

static void use(int gpu)
{
    CUcontext context;

    must(cuDevicePrimaryCtxRetain(&context, gpu), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

PLACE load_mesh(void)
{
    CUdeviceptr pointer;
    size_t pitch;

    for (int part = 0; part < 3; part++) {
        must(cuMemAlloc_v2(&pointer, 40 * MIB), "cuMemAlloc");
    }
    must(cuMemAllocPitch_v2(&pointer, &pitch, 4096, 1024, 4), "cuMemAllocPitch");
    must(cuMemAlloc_v2(&pointer, 1000), "cuMemAlloc");
}

PLACE share_state(void)
{
    CUdeviceptr pointer;

    must(cuMemAllocManaged(&pointer, 24 * MIB, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
}

/* The pool keeps what is freed while its threshold says so. */
PLACE queue_work(void)
{
    cuuint64_t all = UINT64_MAX;
    CUdeviceptr pointers[2];
    CUmemoryPool pool;

    must(cuDeviceGetDefaultMemPool(&pool, 0), "cuDeviceGetDefaultMemPool");
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), "threshold");
    for (int i = 0; i < 2; i++) {
        must(cuMemAllocAsync(&pointers[i], 32 * MIB, NULL), "cuMemAllocAsync");
    }
    must(cuMemFreeAsync(pointers[0], NULL), "cuMemFreeAsync");
    must(cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

PLACE map_pages(void)
{
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;

    must(cuMemCreate(&handle, 16 * MIB, &wanted, 0), "cuMemCreate");
}

PLACE draw_picture(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUarray array;

    must(cuArrayCreate_v2(&array, &shape), "cuArrayCreate");
}

static void *help(void *nothing)
{
    CUdeviceptr pointer;

    use(1);
    must(cuMemAlloc_v2(&pointer, 64 * MIB), "cuMemAlloc");
    return nothing;
}

PLACE work(void)
{
    pthread_t helper;

    use(0);
    load_mesh();
    share_state();
    queue_work();
    map_pages();
    draw_picture();
    if (pthread_create(&helper, NULL, help, NULL) != 0) {
        exit(1);
    }
    pthread_join(helper, NULL);
    hold();
}

/* What is refused within 10 s of the first time is told with the first refusal after them. */
PLACE insist(void)
{
    CUdeviceptr pointer;

    use(0);
    must(cuMemAlloc_v2(&pointer, 100 * MIB), "cuMemAlloc");
    for (unsigned int i = 0; i < 200; i++) {
        if (i == 199) {
            sleep(11);
        }
        if (cuMemAlloc_v2(&pointer, (300 + i) * MIB) != CUDA_ERROR_OUT_OF_MEMORY) {
            must(CUDA_ERROR_UNKNOWN, "no refusal");
        }
    }
    hold();
}

int main(int count, char **words)
{
    must(cuInit(0), "cuInit");
    if (count > 1 && strcmp(words[1], "stubborn") == 0) {
        insist();
    } else {
        work();
    }
    return 0;
}
