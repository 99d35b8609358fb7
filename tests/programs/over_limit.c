/* SPDX-License-Identifier: MIT
 *
 * A CUDA program that wants more than its limit: takes memory in pieces until less than 512 MiB
 * are left, or as much as it is told, asks for 512 MiB at once, and goes on with what it has. It
 * knows nothing of gpulimit; the demo and the GPU tests run it under the library.
 *
 *   usage: over_limit [TAKE_MIB [ASK_MIB]]
 *
 * When it has been refused it prints a line beginning with HOLD and waits for a line on standard
 * input, so that others can look at it. Ends with 0 if the refusal was an ordinary CUDA
 * out-of-memory error and memory could be taken again afterwards.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>
#include <cudaTypedefs.h>

#define MIB ((size_t)1 << 20)

enum { PIECE_MIB = 100, PIECES_MAX = 1024, PATIENCE_SECONDS = 300 };

/* What this program calls: the member of cu, the driver's symbol, NVIDIA's typedef for it. */
#define CALLS(CALL)                                                                                \
    CALL(init, cuInit, PFN_cuInit_v2000)                                                           \
    CALL(device_get, cuDeviceGet, PFN_cuDeviceGet_v2000)                                           \
    CALL(retain, cuDevicePrimaryCtxRetain, PFN_cuDevicePrimaryCtxRetain_v7000)                     \
    CALL(release, cuDevicePrimaryCtxRelease_v2, PFN_cuDevicePrimaryCtxRelease_v11000)              \
    CALL(set_current, cuCtxSetCurrent, PFN_cuCtxSetCurrent_v4000)                                  \
    CALL(get_info, cuMemGetInfo_v2, PFN_cuMemGetInfo_v3020)                                        \
    CALL(alloc, cuMemAlloc_v2, PFN_cuMemAlloc_v3020)                                               \
    CALL(free, cuMemFree_v2, PFN_cuMemFree_v3020)                                                  \
    CALL(error_name, cuGetErrorName, PFN_cuGetErrorName_v6000)

static struct {
#define MEMBER(_member, _symbol, _type) _type _member;
    CALLS(MEMBER)
} cu;

static CUdeviceptr pieces[PIECES_MAX];
static size_t pieces_used;

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "over_limit: %s\n", dlerror());
        exit(1);
    }
    /* Stored through void **, as dlsym's manual page does: C has no conversion between the two. */
#define RESOLVE(_member, _symbol, _type)                                                           \
    *(void **)&cu._member = dlsym(driver, #_symbol);                                               \
    if (!cu._member) {                                                                             \
        fputs("over_limit: the driver lacks " #_symbol "\n", stderr);                              \
        exit(1);                                                                                   \
    }
    CALLS(RESOLVE)
}

static const char *name_of(CUresult result)
{
    const char *name = NULL;
    (void)cu.error_name(result, &name); /* an unknown error has no name: NULL stays */
    return name ? name : "an unknown error";
}

static void must(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "over_limit: %s: %s\n", what, name_of(result));
        exit(1);
    }
}

static void take(size_t total_mib)
{
    for (size_t taken = 0; taken < total_mib && pieces_used < PIECES_MAX; taken += PIECE_MIB) {
        size_t left = total_mib - taken;
        must(cu.alloc(&pieces[pieces_used], (left < PIECE_MIB ? left : PIECE_MIB) * MIB),
             "cuMemAlloc");
        pieces_used++;
    }
}

/* How much to take so that less than that is left: the context has its part of the limit already,
 * on every card another one. */
static size_t leave_less(size_t free_bytes, size_t less_mib)
{
    size_t free_mib = free_bytes / MIB;
    return free_mib < less_mib ? 0 : (free_mib - less_mib) / PIECE_MIB * PIECE_MIB + PIECE_MIB;
}

static void give_all_back(void)
{
    while (pieces_used > 0)
        must(cu.free(pieces[--pieces_used]), "cuMemFree");
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
    alarm(0);
}

int main(int argc, char **argv)
{
    size_t ask_mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 512;

    load_driver();
    must(cu.init(0), "cuInit");
    CUdevice device;
    CUcontext context;
    must(cu.device_get(&device, 0), "cuDeviceGet");
    must(cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cu.set_current(context), "cuCtxSetCurrent");

    size_t free_bytes, total_bytes;
    must(cu.get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    printf("over_limit: the GPU says that it has %zu MiB\n", total_bytes / MIB);
    size_t take_mib = argc > 1 ? strtoul(argv[1], NULL, 10) : leave_less(free_bytes, ask_mib);
    printf("over_limit: of that, %zu MiB are free\n", free_bytes / MIB);
    take(take_mib);
    printf("over_limit: holds %zu MiB in %zu pieces, asks for %zu MiB more\n", take_mib,
           pieces_used, ask_mib);
    fflush(stdout);

    CUdeviceptr more = 0;
    CUresult result = cu.alloc(&more, ask_mib * MIB);
    printf("over_limit: cuMemAlloc answered %d, %s\n", (int)result, name_of(result));
    fflush(stdout);
    hold();

    give_all_back();
    CUresult again = cu.alloc(&more, ask_mib * MIB);
    printf("over_limit: with its pieces freed, the same request: %s\n", name_of(again));
    if (again == CUDA_SUCCESS)
        must(cu.free(more), "cuMemFree");
    must(cu.release(device), "cuDevicePrimaryCtxRelease");
    return result == CUDA_ERROR_OUT_OF_MEMORY && again == CUDA_SUCCESS ? 0 : 1;
}
