/* SPDX-License-Identifier: MIT
 *
 * What the library says to people: how much at each verbosity, and where to. That it says nothing
 * in programs without CUDA is in test_guest.c; the wording is tested in tests/unit/.
 */
#include "preload.h"

#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in the started program ---- */

/* Something to say at each verbosity. */
static int play_talk(void)
{
    CUdeviceptr address;
    CUmodule module;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module globals=1024") == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, 1000) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(1000)) == CUDA_ERROR_OUT_OF_MEMORY);
    printf("%d", (int)getpid());
    return 0;
}

static int play_failing_init(void)
{
    expect(cuInit(0) != CUDA_SUCCESS);
    return 0;
}

/* Refused twice, once got over; a child that is refused nothing ends as quietly as one that never
 * heard of CUDA. */
static int play_refusals(void)
{
    CUdeviceptr held, address;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&held, MIB(600)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(500)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemFree_v2(held) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(500)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(2000)) == CUDA_ERROR_OUT_OF_MEMORY);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    expect(role_wait(child) == 0);
    return 0;
}

/* A card that has less than the limit allows. */
static int play_full(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(200)) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        expect(cuMemAlloc_v2(&address, MIB(600)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(preload_device()->denials == 0);
    return 0;
}

/* A program that has closed its standard error, as daemons do. */
static int play_closed(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(close(STDERR_FILENO) == 0);
    errno = 0;
    CUresult result = cuMemAlloc_v2(&address, MIB(2000));
    return result == CUDA_ERROR_OUT_OF_MEMORY && errno == 0 ? 0 : 1;
}

static const struct role roles[] = {
    {"talk", play_talk},         {"failing init", play_failing_init},
    {"refusals", play_refusals}, {"full", play_full},
    {"closed", play_closed},     {0}};

/* ---- in the test ---- */

static struct program program;

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

static void test_each_verbosity_says_more(void **state)
{
    unsigned lines[5];
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        char variable[32];
        snprintf(variable, sizeof variable, "GPU_LIMIT_VERBOSE=%u", i);
        PLAY("talk", variable);
        program_assert_ok(&program);
        lines[i] = program_lines(program.err);
        assert_int_equal(strstr(program.err, "gpulimit: refused") != NULL, i >= 1);
        assert_int_equal(strncmp(program.err, "gpulimit: GPU_LIMIT_MB=1024; ledger /", 37) == 0,
                         i >= 2);
        assert_int_equal(strstr(program.err, "cuMemAlloc_v2 100 MiB on GPU 0") != NULL, i >= 3);
        assert_int_equal(strstr(program.err, "cuModuleLoadData 2 MiB of overhead on GPU 0") != NULL,
                         i >= 3);
        assert_int_equal(strstr(program.err, "cuMemAlloc_v2 1000 bytes on GPU 0") != NULL, i >= 4);
    }
    assert_int_equal(lines[0], 0);
    assert_int_equal(lines[2], lines[1] + 1);
    assert_int_equal(lines[3], lines[2] + 2);
    assert_int_equal(lines[4], lines[3] + 1);
}

static void test_messages_go_where_they_are_sent(void **state)
{
    char folder[] = "/tmp/test_config.XXXXXX", variable[128], path[128];
    char text[4096] = "";
    (void)state;
    PLAY("talk", "GPU_LIMIT_VERBOSE=4", "GPU_LIMIT_LOG=none");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_non_null(mkdtemp(folder));
    snprintf(variable, sizeof variable, "GPU_LIMIT_LOG=%s/log.%%p", folder);
    PLAY("talk", "GPU_LIMIT_VERBOSE=4", variable);
    snprintf(path, sizeof path, "%s/log.%.10s", folder, program.out);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_true(got > 0);
    assert_non_null(strstr(text, "gpulimit: refused 1000 MiB on GPU 0"));
    assert_non_null(strstr(text, "cuMemAlloc_v2 1000 bytes on GPU 0"));
}

/* A place for messages that is none is no place for this message. */
static void test_wrong_place_for_messages_is_told_on_stderr(void **state)
{
    char folder[] = "/tmp/test_config.XXXXXX", here[512];
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0); /* where a file of that name would appear */
    PLAY("failing init", "GPU_LIMIT_LOG=nowhere");
    unlink("nowhere");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rmdir(folder), 0);
    program_assert_ok(&program);
    assert_int_equal(program_lines(program.err), 1);
    assert_int_equal(strncmp(program.err, "gpulimit: GPU_LIMIT_LOG=", 24), 0);
}

static void test_a_refusal_says_who_holds_and_the_end_says_how_it_went(void **state)
{
    (void)state;
    PLAY("refusals", "GPU_LIMIT_VERBOSE=1", "SIMGPU_CONTEXT_MB=64");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit: refused 500 MiB on GPU 0: 664 MiB of the limit "
                                        "of 1024 MiB in use, 360 MiB left (GPU_LIMIT_MB=1024).\n"));
    assert_non_null(strstr(program.err, "gpulimit:   asked for by test_preload_messages+0x"));
    assert_non_null(strstr(program.err, " (cuMemAlloc_v2) in process "));
    assert_non_null(strstr(program.err, "gpulimit:   held by test_preload_messages+0x"));
    assert_non_null(strstr(program.err, " 600 MiB (1 allocation); overhead: context, code, "
                                        "streams 64 MiB.\n"));
    static const char last[] = "gpulimit: GPU 0 peak 664 of 1024 MiB, 2 requests refused (1 later "
                               "succeeded).\n";
    size_t length = strlen(program.err);
    assert_true(length > sizeof last);
    assert_string_equal(program.err + length - (sizeof last - 1), last);
    assert_int_equal(program_lines(program.err), 7); /* and nothing else, of either process */
}

static void test_without_stacks_a_refusal_names_the_call_and_the_kinds(void **state)
{
    (void)state;
    PLAY("refusals", "GPU_LIMIT_VERBOSE=1", "GPU_LIMIT_STACKS=off");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit:   asked for by cuMemAlloc_v2 in process "));
    assert_non_null(strstr(program.err,
                           "gpulimit:   held by cuMemAlloc, cuMemAllocPitch 600 MiB (1 "
                           "allocation).\n"));
}

static void test_a_card_that_is_full_below_the_limit_is_said_once(void **state)
{
    (void)state;
    PLAY("full", "GPU_LIMIT_VERBOSE=1", "SIMGPU_MEMORY_MB=512");
    program_assert_ok(&program);
    static const char first[] =
        "gpulimit: the driver, not the limit, refused 600 MiB on GPU 0: the "
        "card is really full, 312 MiB free of 512 MiB (200 MiB of "
        "GPU_LIMIT_MB=1024 in use).\n";
    assert_int_equal(strncmp(program.err, first, sizeof first - 1), 0);
    assert_int_equal(program_lines(program.err), 4);
    PLAY("full", "GPU_LIMIT_VERBOSE=0", "SIMGPU_MEMORY_MB=512");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

static void test_a_closed_standard_error_changes_nothing(void **state)
{
    (void)state;
    PLAY("closed", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_string_equal(program.out, "");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_verbosity_says_more),
        cmocka_unit_test(test_messages_go_where_they_are_sent),
        cmocka_unit_test(test_wrong_place_for_messages_is_told_on_stderr),
        cmocka_unit_test(test_a_refusal_says_who_holds_and_the_end_says_how_it_went),
        cmocka_unit_test(test_without_stacks_a_refusal_names_the_call_and_the_kinds),
        cmocka_unit_test(test_a_card_that_is_full_below_the_limit_is_said_once),
        cmocka_unit_test(test_a_closed_standard_error_changes_nothing),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
