/* SPDX-License-Identifier: MIT
 *
 * Times pairs of allocate and free, with some hundred others live, and calls that are often made,
 * and prints nanoseconds a pair or call.
 * Knows nothing of gpulimit: tests/bench/run runs it bare and under the library, over a driver
 * whose calls cost nothing, or over the one that is there.
 *
 *   usage: pairs [ROUNDS [gpu]]     prints lines: NAME NANOSECONDS
 *
 * gpu: the driver is a true one, which wants a context, and costs so much that fewer pairs do.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 256, PAIRS = 200000, GPU_PAIRS = 1000 };

static unsigned pairs = PAIRS;

static struct {
    CUresult (*init)(unsigned int);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*free)(CUdeviceptr);
    CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream);
    CUresult (*free_async)(CUdeviceptr, CUstream);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*get_info)(size_t *, size_t *);
    CUresult (*launch)(CUgraphExec, CUstream);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*set_current)(CUcontext);
} cu;

static void *find(void *driver, const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "pairs: %s\n", dlerror());
        exit(1);
    }
    return found;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "pairs: error %d\n", (int)result);
        exit(1);
    }
}

static void one_linear(size_t bytes)
{
    CUdeviceptr address;
    must(cu.alloc(&address, bytes));
    must(cu.free(address));
}

static void one_async(size_t bytes)
{
    CUdeviceptr address;
    must(cu.alloc_async(&address, bytes, NULL));
    must(cu.free_async(address, NULL));
}

static void one_vmm(size_t bytes)
{
    static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemGenericAllocationHandle handle;
    must(cu.create(&handle, bytes, &prop, 0));
    must(cu.release(handle));
}

static void one_query(size_t bytes)
{
    size_t free, total;
    (void)bytes;
    must(cu.get_info(&free, &total));
}

/* Of a graph that has no memory. */
static void one_launch(size_t bytes)
{
    (void)bytes;
    must(cu.launch((CUgraphExec)&cu, NULL));
}

static void time_pairs(const char *name, void (*one)(size_t bytes), size_t bytes)
{
    double start = now_ns();
    for (unsigned i = 0; i < pairs; i++)
        one(bytes);
    printf("%s %.1f\n", name, (now_ns() - start) / pairs);
}

static void make_context(void *driver)
{
    CUcontext context;
    *(void **)&cu.retain = find(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&cu.set_current = find(driver, "cuCtxSetCurrent");
    must(cu.retain(&context, 0));
    must(cu.set_current(context));
    pairs = GPU_PAIRS;
}

int main(int argc, char **argv)
{
    bool is_gpu = argc > 2;
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "pairs: %s\n", dlerror());
        return 1;
    }
    *(void **)&cu.init = find(driver, "cuInit");
    *(void **)&cu.alloc = find(driver, "cuMemAlloc_v2");
    *(void **)&cu.free = find(driver, "cuMemFree_v2");
    *(void **)&cu.alloc_async = find(driver, "cuMemAllocAsync");
    *(void **)&cu.free_async = find(driver, "cuMemFreeAsync");
    *(void **)&cu.create = find(driver, "cuMemCreate");
    *(void **)&cu.release = find(driver, "cuMemRelease");
    *(void **)&cu.get_info = find(driver, "cuMemGetInfo_v2");
    *(void **)&cu.launch = find(driver, "cuGraphLaunch");
    must(cu.init(0));
    if (is_gpu)
        make_context(driver);
    for (unsigned i = 0; i < LIVE; i++) {
        CUdeviceptr live;
        must(cu.alloc(&live, 4096));
    }
    for (unsigned round = 0; round < rounds; round++) {
        time_pairs("cuMemAlloc+cuMemFree/4KiB", one_linear, 4096);
        time_pairs("cuMemAlloc+cuMemFree/16MiB", one_linear, 16u << 20);
        time_pairs("cuMemAllocAsync+cuMemFreeAsync/4KiB", one_async, 4096);
        time_pairs("cuMemCreate+cuMemRelease/2MiB", one_vmm, 2u << 20);
        time_pairs("cuMemGetInfo", one_query, 0);
        if (!is_gpu)
            time_pairs("cuGraphLaunch", one_launch, 0);
    }
    return 0;
}
