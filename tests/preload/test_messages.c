/* SPDX-License-Identifier: MIT
 *
 * What the library says to people: how much at each verbosity, and where to. That it says nothing
 * in programs without CUDA is in test_guest.c; the wording is tested in tests/unit/.
 */
#include "preload.h"

#include "program.h"

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

static const struct role roles[] = {{"talk", play_talk}, {"failing init", play_failing_init}, {0}};

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

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_verbosity_says_more),
        cmocka_unit_test(test_messages_go_where_they_are_sent),
        cmocka_unit_test(test_wrong_place_for_messages_is_told_on_stderr),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
