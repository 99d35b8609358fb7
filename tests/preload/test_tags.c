/* SPDX-License-Identifier: MIT
 *
 * Programs that name their phases, by gpulimit/gpulimit.h: what a reader of their ledger finds with
 * each allocation. NVTX is in test_nvtx.c.
 */
#include "preload.h"

#include "own_ledger.h"
#include "program.h"

#include "gpulimit/gpulimit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in the started program ---- */

/* Whether the ledger has an allocation with a tag, "" for none, and a stream of this name. */
static bool is_listed(CUdeviceptr address, const char *tag, const char *stream)
{
    struct gpulimit_ledger *ledger = own_ledger();
    const struct gpulimit_ledger_entry *entry = own_entry(ledger, address);
    bool is_so = entry && strcmp(gpulimit_reader_text(ledger, entry->tag), tag) == 0 &&
                 strcmp(gpulimit_reader_text(ledger, entry->stream), stream) == 0;
    if (!is_so && entry)
        fprintf(stderr, "it has \"%s\" and \"%s\"\n", gpulimit_reader_text(ledger, entry->tag),
                gpulimit_reader_text(ledger, entry->stream));
    gpulimit_reader_close(ledger);
    return is_so;
}

/* Allocates, looks and frees. */
static bool is_tagged(const char *tag)
{
    CUdeviceptr address;
    if (cuMemAlloc_v2(&address, MIB(2)) != CUDA_SUCCESS)
        return false;
    bool is_so = is_listed(address, tag, "");
    return cuMemFree_v2(address) == CUDA_SUCCESS && is_so;
}

static int play_nested(void)
{
    errno = 4242;
    gpulimit_tag_push("epoch 3"); /* before anything of CUDA */
    gpulimit_mark("too early for anything");
    expect(errno == 4242);
    expect(role_begin() == 0 && is_tagged("epoch 3"));
    gpulimit_tag_push("validation");
    expect(is_tagged("validation"));
    gpulimit_tag_pop();
    expect(is_tagged("epoch 3"));
    gpulimit_tag_pop();
    expect(is_tagged(""));
    gpulimit_tag_pop();
    expect(is_tagged(""));
    return 0;
}

static void *loader(void *is_right)
{
    CUcontext context;
    *(bool *)is_right = cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                        cuCtxSetCurrent(context) == CUDA_SUCCESS && is_tagged("");
    gpulimit_tag_push("loader");
    *(bool *)is_right &= is_tagged("loader"); /* and is never popped */
    return NULL;
}

static int play_threads(void)
{
    pthread_t thread;
    bool is_right = false;
    gpulimit_tag_push("trainer");
    expect(role_begin() == 0 && is_tagged("trainer"));
    expect(pthread_create(&thread, NULL, loader, &is_right) == 0);
    expect(pthread_join(thread, NULL) == 0 && is_right);
    expect(is_tagged("trainer"));
    return 0;
}

static int play_fork(void)
{
    gpulimit_tag_push("worker");
    pid_t child = fork();
    if (child == 0)
        _exit(role_begin() == 0 && is_tagged("worker") ? 0 : 1);
    expect(role_wait(child) == 0);
    expect(role_begin() == 0 && is_tagged("worker"));
    return 0;
}

static int play_mark(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0 && cuMemAlloc_v2(&address, MIB(2)) == CUDA_SUCCESS);
    errno = 4242;
    gpulimit_mark("epoch 3");
    gpulimit_mark(NULL);
    expect(errno == 4242);
    struct gpulimit_ledger *ledger = own_ledger();
    expect(ledger && ledger->mark_count == 2);
    expect(strcmp(gpulimit_reader_text(ledger, ledger->marks[0].text), "epoch 3") == 0);
    expect(ledger->marks[0].charged_bytes == MIB(2));
    expect(strcmp(gpulimit_reader_text(ledger, ledger->marks[1].text), "") == 0);
    gpulimit_reader_close(ledger);
    return 0;
}

static int play_refused(void)
{
    CUdeviceptr address;
    gpulimit_tag_push("epoch 3");
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(2048)) == CUDA_ERROR_OUT_OF_MEMORY);
    struct gpulimit_ledger *ledger = own_ledger();
    expect(ledger && ledger->event_count == 1);
    expect(strcmp(gpulimit_reader_text(ledger, ledger->events[0].tag), "epoch 3") == 0);
    gpulimit_reader_close(ledger);
    return 0;
}

/* What an allocation's result and address (by its place, as it is written only now) are about. */
static bool is_on(CUresult result, const CUdeviceptr *address, const char *stream)
{
    bool is_so = result == CUDA_SUCCESS && is_listed(*address, "", stream);
    return is_so && cuMemFree_v2(*address) == CUDA_SUCCESS;
}

static int play_streams(void)
{
    CUdeviceptr at;
    CUstream stream;
    CUmemoryPool pool;
    char name[64];
    expect(role_begin() == 0 && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    snprintf(name, sizeof name, "stream %p", (void *)stream);
    expect(is_on(cuMemAllocAsync(&at, 4096, stream), &at, name));
    expect(is_on(cuMemAllocFromPoolAsync(&at, 4096, pool, stream), &at, name));
    expect(is_on(cuMemAllocAsync(&at, 4096, NULL), &at, "legacy default stream"));
    expect(
        is_on(cuMemAllocAsync(&at, 4096, CU_STREAM_PER_THREAD), &at, "per-thread default stream"));
    expect(is_on(cuMemAllocAsync_ptsz(&at, 4096, stream), &at, name));
    expect(is_on(cuMemAllocAsync_ptsz(&at, 4096, NULL), &at, "per-thread default stream"));
    expect(is_on(cuMemAllocAsync_ptsz(&at, 4096, CU_STREAM_LEGACY), &at, "legacy default stream"));
    expect(is_on(cuMemAllocFromPoolAsync_ptsz(&at, 4096, pool, NULL), &at,
                 "per-thread default stream"));
    return 0;
}

static const struct role roles[] = {{"nested", play_nested},
                                    {"threads", play_threads},
                                    {"fork", play_fork},
                                    {"mark", play_mark},
                                    {"refused", play_refused},
                                    {"streams", play_streams},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

static void assert_plays(const char *role)
{
    program_play(&program, role, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
}

static void test_the_innermost_name_is_the_allocations(void **state)
{
    (void)state;
    assert_plays("nested");
}

static void test_names_are_each_threads_own(void **state)
{
    (void)state;
    assert_plays("threads");
}

static void test_a_child_goes_on_under_its_parents_name(void **state)
{
    (void)state;
    assert_plays("fork");
}

static void test_a_mark_says_what_is_held(void **state)
{
    (void)state;
    assert_plays("mark");
}

static void test_a_refusal_says_what_the_asker_was_at(void **state)
{
    (void)state;
    program_play(&program, "refused", PROGRAM_LIST("GPU_LIMIT_VERBOSE=1"));
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, " in \"epoch 3\" (cuMemAlloc_v2) in process "));
}

static void test_streams_have_names(void **state)
{
    (void)state;
    assert_plays("streams");
}

static void test_however_a_program_is_built_it_finds_the_library_or_does_without(void **state)
{
    static const char *const builds[] = {"PHASES_PIE", "PHASES_NO_PIE"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const char *path = getenv(builds[i]);
        assert_non_null(path);
        program_run(&program, PROGRAM_LIST(program_under_library()), PROGRAM_LIST(path));
        program_assert_ok(&program);
        assert_string_equal(program.out, "epoch 3\n");
        program_run(&program, PROGRAM_LIST(program_without_library()), PROGRAM_LIST(path));
        program_assert_ok(&program);
        assert_string_equal(program.out, "no ledger\n");
    }
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_name_is_the_allocations),
        cmocka_unit_test(test_names_are_each_threads_own),
        cmocka_unit_test(test_a_child_goes_on_under_its_parents_name),
        cmocka_unit_test(test_a_mark_says_what_is_held),
        cmocka_unit_test(test_a_refusal_says_what_the_asker_was_at),
        cmocka_unit_test(test_streams_have_names),
        cmocka_unit_test(test_however_a_program_is_built_it_finds_the_library_or_does_without),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests_name("tags", tests, NULL, NULL);
}
