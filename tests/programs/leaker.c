/* SPDX-License-Identifier: MIT
 *
 * A CUDA program that leaks on purpose: weights at the start, then in each step a workspace that is
 * freed, a cache whose oldest piece makes room for a new one, and 1 MiB that is forgotten. Which of
 * them only grows is what `gpulimit-stat allocs --growing` has to find out. It knows nothing of
 * gpulimit.
 *
 *   usage: leaker [STEPS [MILLISECONDS_PER_STEP]]        default: 100 20
 *
 * When it has taken its steps it prints a line beginning with HOLD, as over_limit does, and waits
 * for a line on standard input.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>
#include <cudaTypedefs.h>

#define MIB ((size_t)1 << 20)

enum { WEIGHTS = 8, CACHE = 4, PATIENCE_SECONDS = 300 };

static PFN_cuMemAlloc_v3020 alloc;
static PFN_cuMemFree_v3020 release;
static CUdeviceptr cache[CACHE];

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "leaker: %s: error %d\n", what, (int)result);
        exit(1);
    }
}

static void *find(void *driver, const char *symbol)
{
    void *function = dlsym(driver, symbol);
    if (!function) {
        fprintf(stderr, "leaker: the driver lacks %s\n", symbol);
        exit(1);
    }
    return function;
}

static void begin(void)
{
    PFN_cuInit_v2000 init;
    PFN_cuDevicePrimaryCtxRetain_v7000 retain;
    PFN_cuCtxSetCurrent_v4000 set_current;
    CUcontext context;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "leaker: %s\n", dlerror());
        exit(1);
    }
    *(void **)&init = find(driver, "cuInit");
    *(void **)&retain = find(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = find(driver, "cuCtxSetCurrent");
    *(void **)&alloc = find(driver, "cuMemAlloc_v2");
    *(void **)&release = find(driver, "cuMemFree_v2");
    must(init(0), "cuInit");
    must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(set_current(context), "cuCtxSetCurrent");
}

/* Not inlined: each is a call site of its own. */
__attribute__((noinline)) static void load_weights(void)
{
    CUdeviceptr weight;
    for (int i = 0; i < WEIGHTS; i++)
        must(alloc(&weight, 8 * MIB), "weights");
}

__attribute__((noinline)) static void compute(void)
{
    CUdeviceptr workspace;
    must(alloc(&workspace, 16 * MIB), "workspace");
    must(release(workspace), "workspace");
}

__attribute__((noinline)) static void refresh_cache(int step)
{
    CUdeviceptr *oldest = &cache[step % CACHE];
    if (*oldest)
        must(release(*oldest), "cache");
    must(alloc(oldest, 4 * MIB), "cache");
}

__attribute__((noinline)) static void forget(void)
{
    CUdeviceptr forgotten;
    must(alloc(&forgotten, MIB), "forgotten"); /* the leak */
}

static void hold(void)
{
    printf("HOLD: press Enter to go on\n");
    fflush(stdout);
    alarm(PATIENCE_SECONDS); /* nobody is there: end by SIGALRM rather than never */
    int c;
    do
        c = getchar();
    while (c != '\n' && c != EOF);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    useconds_t pause = (argc > 2 ? (useconds_t)atoi(argv[2]) : 20) * 1000;
    begin();
    load_weights();
    for (int step = 0; step < steps; step++) {
        compute();
        refresh_cache(step);
        forget();
        usleep(pause);
    }
    hold();
    return 0;
}
