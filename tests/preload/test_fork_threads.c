/* SPDX-License-Identifier: MIT
 *
 * Forks while other threads are inside the library: whatever lock they hold then, the child can go
 * on, call CUDA (and be told off by the driver), start another program, and end.
 */
#include "preload.h"

#include "program.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 8, FORKS = 100, PATIENCE_SECONDS = 100 };

/* ---- in the started program ---- */

static atomic_bool is_over;

/* All that takes locks, over and over. */
static void *keep_allocating(void *failed)
{
    CUcontext context;
    CUdeviceptr address, async;
    bool ok = cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
              cuCtxSetCurrent(context) == CUDA_SUCCESS;
    while (ok && !is_over) {
        ok = cuMemAlloc_v2(&address, 4096) == CUDA_SUCCESS &&
             cuMemAllocAsync(&async, MIB(2), NULL) == CUDA_SUCCESS &&
             cuMemFree_v2(address) == CUDA_SUCCESS && cuMemFreeAsync(async, NULL) == CUDA_SUCCESS &&
             cuMemAlloc_v2(&address, MIB(2000)) == CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!ok)
        *(atomic_bool *)failed = true;
    return NULL;
}

/* Takes the library's locks once more, with an empty ledger and a driver that is of no use. */
static int call_in_child(void)
{
    CUdeviceptr address;
    expect(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuMemFree_v2(4096) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuMemUnmap(MIB(2), MIB(2)) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
    return 0;
}

static int fork_many(void)
{
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0 && i % 3 == 0)
            execl("/proc/self/exe", "child", "nothing", (char *)NULL);
        if (child == 0)
            _exit(i % 3 == 1 ? 0 : call_in_child());
        expect(role_wait(child) == 0);
    }
    return 0;
}

static int play_threads(void)
{
    static atomic_bool failed;
    pthread_t threads[THREADS];
    alarm(PATIENCE_SECONDS); /* a child that hangs ends the test by SIGALRM */
    expect(role_begin() == 0);
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, keep_allocating, &failed) == 0);
    int result = fork_many();
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_join(threads[i], NULL) == 0);
    expect(!failed);
    expect(preload_device()->live_allocations == 0);
    return result;
}

static int play_nothing(void)
{
    return 0;
}

static const struct role roles[] = {{"threads", play_threads}, {"nothing", play_nothing}, {0}};

/* ---- in the test ---- */

static struct program program;

static void test_no_fork_among_threads_hangs(void **state)
{
    (void)state;
    program_play(&program, "threads", PROGRAM_LIST(NULL));
    program_assert_ok(&program);
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_fork_among_threads_hangs),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
