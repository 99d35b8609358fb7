/* SPDX-License-Identifier: MIT
 *
 * Measures shim/holes.c on a real driver: how often a pool grows for a request that a hole should
 * hold. Allocates and frees at random, keeps the holes as the library does, and compares what they
 * say with what the pool's reserve does. Runs without the library.
 *
 *   cc -D_GNU_SOURCE -I shim -o pool_holes tests/gpu/pool_holes.c shim/holes.c -lcuda
 *   ./pool_holes
 */
#include "holes.h"

#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

enum { LIVE = 64, STEPS = 4000 };

struct piece {
    CUdeviceptr address; /* 0: none */
    size_t bytes;
};

struct tally {
    unsigned fitted;         /* a hole was to hold it, and the pool did not grow */
    unsigned grew;           /* the pool did */
    uint64_t most_bytes;     /* by that much at most */
    unsigned fitted_unknown; /* no hole was known, but the pool did not grow */
};

static CUmemoryPool pool;
static CUstream streams[2];

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "pool_holes: %s: error %d\n", what, (int)result);
    exit(1);
}

static uint64_t reserved(void)
{
    cuuint64_t bytes;
    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes), "reserved");
    return bytes;
}

static size_t random_bytes(unsigned mix)
{
    static const size_t most[] = {4 << 10, 1 << 20, 8 << 20, 40 << 20, 1 << 20, 100 << 20};
    size_t limit = mix == 4 && random() % 10 == 0 ? 100 << 20 : most[mix];
    return 1 + (((size_t)random() << 8) ^ (size_t)random()) % limit;
}

static void allocate(struct piece *piece, size_t bytes, CUstream stream, struct holes *holes,
                     struct tally *tally)
{
    bool fits = holes_fit(holes, bytes);
    uint64_t before = reserved();
    must(cuMemAllocAsync(&piece->address, bytes, stream), "cuMemAllocAsync");
    uint64_t after = reserved();
    uint64_t grown = after > before ? after - before : 0;
    piece->bytes = bytes;
    if (after < before)
        holes_shrink(holes);
    holes_fill(holes, piece->address, bytes, grown, true);
    tally->fitted += fits && grown == 0;
    tally->grew += fits && grown > 0;
    tally->fitted_unknown += !fits && grown == 0;
    if (fits && grown > tally->most_bytes)
        tally->most_bytes = grown;
}

static void release(struct piece *piece, CUstream stream, struct holes *holes)
{
    holes_leave(holes, piece->address, piece->bytes);
    must(cuMemFreeAsync(piece->address, stream), "cuMemFreeAsync");
    holes_open(holes, piece->address, piece->bytes);
    piece->address = 0;
}

static void trim(struct holes *holes)
{
    uint64_t before = reserved();
    must(cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
    if (reserved() < before)
        holes_shrink(holes);
}

static void run_mix(unsigned mix, unsigned streams_count, bool synchronises, struct tally *tally)
{
    struct piece pieces[LIVE] = {0};
    struct holes holes = {0};
    srandom(mix * 7 + streams_count);
    for (unsigned step = 0; step < STEPS; step++) {
        struct piece *piece = &pieces[random() % LIVE];
        CUstream stream = streams[(unsigned long)random() % streams_count];
        if (piece->address)
            release(piece, stream, &holes);
        else
            allocate(piece, random_bytes(mix), stream, &holes, tally);
        if (synchronises && step % 50 == 0)
            must(cuCtxSynchronize(), "cuCtxSynchronize");
        if (step % 500 == 499)
            trim(&holes);
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (pieces[i].address)
            release(&pieces[i], streams[0], &holes);
    }
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    trim(&holes);
}

int main(void)
{
    static const char *const names[] = {
        "4 KiB", "1 MiB", "8 MiB", "40 MiB", "1 MiB, one in ten 100 MiB", "100 MiB"};
    CUdevice device;
    CUcontext context;
    cuuint64_t keep = UINT64_MAX;
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuDeviceGetMemPool(&pool, device), "cuDeviceGetMemPool");
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "threshold");
    printf(
        "| largest piece | hole said it fits | of these the pool grew | by at most | fitted unforeseen |\n"
        "|---|---|---|---|---|\n");
    for (unsigned mix = 0; mix < sizeof names / sizeof names[0]; mix++) {
        struct tally tally = {0};
        for (unsigned way = 0; way < 4; way++)
            run_mix(mix, 1 + way % 2, way / 2, &tally);
        printf("| %s | %u | %u | %lu MiB | %u |\n", names[mix], tally.fitted + tally.grew,
               tally.grew, (unsigned long)(tally.most_bytes >> 20), tally.fitted_unknown);
    }
    return 0;
}
