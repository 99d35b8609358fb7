/* SPDX-License-Identifier: MIT
 *
 * Where reports of refusals go, how many there are, and what happens where there can be none. What
 * is in them: test_oom_report.c.
 */
#include "oom.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the started program ---- */

static int play_too_large(void)
{
    expect(role_begin() == 0);
    return oom_refused(MIB(2000));
}

static int play_quiet(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(700)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    return 0;
}

/* Each one larger than all before. */
static int play_storm(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0 && oom_hold() == 0);
    for (unsigned i = 0; i < 200; i++)
        expect(cuMemAlloc_v2(&address, MIB(900 + i)) == CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}

static void *refuse_many(void *argument)
{
    CUcontext context;
    CUdeviceptr address;
    uint64_t passed = cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
                      cuCtxSetCurrent(context) != CUDA_SUCCESS;
    for (unsigned i = 0; i < 50; i++)
        passed += cuMemAlloc_v2(&address, MIB(800 + i)) != CUDA_ERROR_OUT_OF_MEMORY;
    *(uint64_t *)argument = passed;
    return NULL;
}

static int play_threads(void)
{
    pthread_t threads[8];
    uint64_t passed[8];
    expect(role_begin() == 0 && oom_hold() == 0);
    for (unsigned i = 0; i < 8; i++)
        expect(pthread_create(&threads[i], NULL, refuse_many, &passed[i]) == 0);
    for (unsigned i = 0; i < 8; i++)
        expect(pthread_join(threads[i], NULL) == 0 && passed[i] == 0);
    return 0;
}

static int play_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(oom_play_refused());
    expect(role_wait(child) == 0);
    expect(oom_play_refused() == 0);
    printf("%d", (int)child);
    return 0;
}

/* Over its limit a file's writer is killed. */
static int play_no_files(void)
{
    struct rlimit limit = {0, 0};
    expect(role_begin() == 0);
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return oom_refused(MIB(2000));
}

static const struct role roles[] = {{"refused", oom_play_refused}, {"too large", play_too_large},
                                    {"quiet", play_quiet},         {"storm", play_storm},
                                    {"threads", play_threads},     {"fork", play_fork},
                                    {"no files", play_no_files},   {0}};

/* ---- in the test ---- */

static void test_the_message_names_the_report_and_silence_has_one_too(void **state)
{
    (void)state;
    PLAY("refused", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&oom_program);
    char line[600];
    snprintf(line, sizeof line, "gpulimit:   See the whole story: gpulimit-stat report %s\n",
             oom_path(1));
    assert_non_null(strstr(oom_program.err, line));
    assert_int_equal(program_lines(oom_program.err), 6 + 1); /* and one at the end */
    assert_int_equal(oom_files(oom_folder), 2);
    PLAY("too large", "GPU_LIMIT_VERBOSE=0");
    assert_string_equal(oom_program.err, "");
    assert_int_equal(oom_files(oom_folder), 4);
}

static void test_where_nothing_is_refused_nothing_is_written(void **state)
{
    (void)state;
    PLAY("quiet", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&oom_program);
    assert_int_equal(access(oom_folder, F_OK), -1);
    PLAY("refused", "GPU_LIMIT_REPORT_DIR=none", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&oom_program);
    assert_null(strstr(oom_program.err, "See the whole story"));
    assert_int_equal(access(oom_folder, F_OK), -1);
}

static void test_200_refusals_leave_three_reports(void **state)
{
    (void)state;
    PLAY("storm", "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(oom_files(oom_folder), 3);
    for (unsigned number = 1; number <= 3; number++) {
        oom_load(number);
        assert_int_equal(oom_number("request", "bytes"), MIB(899 + number));
    }
}

static void test_threads_share_the_reports(void **state)
{
    (void)state;
    PLAY("threads", "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(oom_files(oom_folder), 3);
    for (unsigned number = 1; number <= 3; number++)
        oom_load(number);
}

static void test_a_limit_on_files_costs_the_report_and_nothing_else(void **state)
{
    (void)state;
    PLAY("no files", "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(access(oom_folder, F_OK), -1);
}

static void test_a_folder_that_others_write_to_or_a_link_gets_none(void **state)
{
    char other[128];
    (void)state;
    assert_int_equal(mkdir(oom_folder, 0700), 0);
    assert_int_equal(chmod(oom_folder, 0777), 0);
    PLAY("refused", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&oom_program);
    assert_int_equal(oom_files(oom_folder), 0);
    assert_non_null(strstr(oom_program.err, "gpulimit: refused 700 MiB"));
    assert_non_null(strstr(oom_program.err, "See who holds the memory: gpulimit-stat allocs -p "));
    assert_int_equal(chmod(oom_folder, 0700), 0);
    snprintf(other, sizeof other, "%s/other", oom_base);
    assert_int_equal(rename(oom_folder, other), 0);
    assert_int_equal(symlink(other, oom_folder), 0);
    PLAY("refused", "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(oom_files(other), 0);
}

static void test_a_child_has_reports_of_its_own(void **state)
{
    char path[600];
    (void)state;
    PLAY("fork", "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(oom_files(oom_folder), 4);
    snprintf(path, sizeof path, "%s/oom-%.10s-1.json", oom_folder, oom_program.out);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_a_container_that_ends_has_the_text(void **state)
{
    char path[128], variable[200];
    (void)state;
    snprintf(path, sizeof path, "%s/termination-log", oom_base);
    snprintf(variable, sizeof variable, "GPU_LIMIT_TERMINATION_LOG=%s", path);
    PLAY("refused", variable, "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    assert_int_equal(access(path, F_OK), -1);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    PLAY("refused", variable, "GPU_LIMIT_VERBOSE=0");
    program_assert_ok(&oom_program);
    oom_read(path);
    assert_int_equal(strncmp(oom_text, "gpulimit: refused 700 MiB on GPU 0: ", 36), 0);
    assert_non_null(strstr(oom_text, "gpulimit-stat report "));
    assert_true(strlen(oom_text) <= 4096);
    PLAY("refused", variable, "GPU_LIMIT_VERBOSE=0", "GPU_LIMIT_REPORT_DIR=none");
    oom_read(path);
    assert_int_equal(strncmp(oom_text, "gpulimit: refused 700 MiB on GPU 0: ", 36), 0);
    assert_null(strstr(oom_text, "gpulimit-stat report "));
}

#define CASE(_test) cmocka_unit_test_setup_teardown(_test, oom_set_up, oom_tear_down)

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        CASE(test_the_message_names_the_report_and_silence_has_one_too),
        CASE(test_where_nothing_is_refused_nothing_is_written),
        CASE(test_200_refusals_leave_three_reports),
        CASE(test_threads_share_the_reports),
        CASE(test_a_limit_on_files_costs_the_report_and_nothing_else),
        CASE(test_a_folder_that_others_write_to_or_a_link_gets_none),
        CASE(test_a_child_has_reports_of_its_own),
        CASE(test_a_container_that_ends_has_the_text),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
