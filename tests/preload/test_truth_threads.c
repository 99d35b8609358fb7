/* SPDX-License-Identifier: MIT
 *
 * Overhead that comes and goes while threads allocate: by the simulator's own figures the device is
 * never over the limit, no thread is told that more is left than is, and when all is over the
 * ledger knows of every byte.
 */
#include "preload.h"

#include "figure.h"
#include "nvml_api.h"
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALLOCATORS = 4, PIECES = 4, ROUNDS = 20000, HUSHED_EVERY = 7, JUDGED_LEAST = 20 };

#define LIMIT   MIB(260)
#define CONTEXT MIB(64)
#define BLOCK   MIB(2)

/* ---- in the started program ---- */

static CUcontext primary;
static atomic_uint working; /* threads that take and give */
static atomic_uint wrong;

#define check(_condition)                                                                          \
    do {                                                                                           \
        if (!(_condition)) {                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition);                       \
            atomic_fetch_add(&wrong, 1);                                                           \
        }                                                                                          \
    } while (0)

/* Calls that take or give: while none has begun that has not ended, the device's figure stands. */
static atomic_uint begun, ended;

#define MOVE(_call) (atomic_fetch_add(&begun, 1), move_ends(_call))

static CUresult move_ends(CUresult result)
{
    atomic_fetch_add(&ended, 1);
    return result;
}

/* Now and then they wait, so that there are such moments. */
static atomic_bool is_hushed;

static void rest(void)
{
    while (atomic_load(&is_hushed))
        usleep(50);
}

static void hush(bool is_on)
{
    atomic_store(&is_hushed, is_on);
    while (is_on && atomic_load(&begun) != atomic_load(&ended))
        usleep(50);
}

static bool is_given_or_refused(CUresult result)
{
    return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY;
}

static void *allocate(void *argument)
{
    CUdeviceptr pieces[PIECES] = {0};
    unsigned seed = (unsigned)(uintptr_t)argument;
    check(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr *piece = &pieces[round % PIECES];
        rest();
        check(MOVE(cuMemFree_v2(*piece)) == CUDA_SUCCESS);
        seed = seed * 1103515245u + 12345u;
        size_t bytes = round % 2 == 0 ? 1 + (seed >> 8) % 100000 : 1 + (seed >> 4) % MIB(40);
        check(is_given_or_refused(MOVE(cuMemAlloc_v2(piece, bytes))));
    }
    for (unsigned i = 0; i < PIECES; i++)
        check(MOVE(cuMemFree_v2(pieces[i])) == CUDA_SUCCESS);
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void *create_contexts(void *argument)
{
    unsigned *created = argument;
    CUcontext context;
    while (atomic_load(&working) > 1) { /* as long as others allocate */
        rest();
        CUresult result = MOVE(cuCtxCreate_v2(&context, 0, 0));
        check(is_given_or_refused(result));
        if (result != CUDA_SUCCESS)
            continue;
        ++*created;
        check(MOVE(cuCtxDestroy_v2(context)) == CUDA_SUCCESS);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static nvmlReturn_t (*memory_info)(nvmlDevice_t, nvmlMemory_t *);
static nvmlDevice_t card;

static bool find_card(void)
{
    nvmlReturn_t (*find)(unsigned, nvmlDevice_t *) = NULL;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (figure_of(0) != CONTEXT || !nvml)
        return false;
    *(void **)&find = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&memory_info = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    return find && memory_info && find(0, &card) == NVML_SUCCESS;
}

/* Returns how many answers could be judged. */
static unsigned ask(void)
{
    unsigned judged = 0;
    check(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
    for (unsigned turn = 0; atomic_load(&working) > 0; turn++) {
        size_t free_bytes = 0, total = 0;
        nvmlMemory_t memory = {.total = 0};
        hush(turn % HUSHED_EVERY == 0);
        unsigned before = atomic_load(&ended);
        bool is_quiet = atomic_load(&begun) == before;
        uint64_t figure = simgpu_process_used(0);
        if (turn % 2 == 0) {
            check(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
        } else {
            check(memory_info(card, &memory) == NVML_SUCCESS);
            free_bytes = memory.free;
            total = memory.total;
        }
        check(total == LIMIT);
        if (!is_quiet || atomic_load(&begun) != before)
            continue;
        judged++;
        check(free_bytes + figure <= LIMIT + BLOCK);
    }
    hush(false);
    return judged;
}

/* GPU_LIMIT_MB=260 */
static int play_storm(void)
{
    pthread_t threads[ALLOCATORS + 1];
    unsigned created = 0;
    expect(role_begin() == 0 && cuCtxGetCurrent(&primary) == CUDA_SUCCESS && find_card());
    atomic_store(&working, ALLOCATORS + 1);
    for (uintptr_t i = 0; i < ALLOCATORS; i++)
        expect(pthread_create(&threads[i], NULL, allocate, (void *)(i + 1)) == 0);
    expect(pthread_create(&threads[ALLOCATORS], NULL, create_contexts, &created) == 0);
    unsigned judged = ask();
    for (unsigned i = 0; i <= ALLOCATORS; i++)
        expect(pthread_join(threads[i], NULL) == 0);
    expect(atomic_load(&wrong) == 0);
    /* What is small is tried in blocks that others have begun, and can make one too many. */
    expect(simgpu_process_peak(0) <= LIMIT + BLOCK);
    expect(judged >= JUDGED_LEAST);
    expect(created > 0 && preload_device()->denials > 0);
    usleep(110000); /* the last look may have been among others, and this one not due */
    expect(cuCtxSynchronize() == CUDA_SUCCESS && figure_is(0, CONTEXT));
    expect(preload_free() == LIMIT - CONTEXT && preload_device()->live_allocations == 0);
    return 0;
}

static const struct role roles[] = {{"storm", play_storm}, {0}};

/* ---- in the test ---- */

static void test_overhead_and_allocations_share_one_limit_at_every_moment(void **state)
{
    static struct program program;
    (void)state;
    program_play(&program, "storm", PROGRAM_LIST("GPU_LIMIT_MB=260"));
    program_assert_ok(&program);
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overhead_and_allocations_share_one_limit_at_every_moment),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
