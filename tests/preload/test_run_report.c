/* SPDX-License-Identifier: MIT
 *
 * The report of the run: written when GPU_LIMIT_REPORT wants it and the process has used CUDA, with
 * the peak as it was and the sums right. The wording is tested in tests/unit/.
 */
#include "preload.h"

#include "program.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- in the started program ---- */

__attribute__((noinline)) static CUdeviceptr take_weights(void)
{
    CUdeviceptr address = 0;
    (void)cuMemAlloc_v2(&address, MIB(300));
    return address;
}

__attribute__((noinline)) static CUdeviceptr take_activations(void)
{
    CUdeviceptr address = 0;
    (void)cuMemAlloc_v2(&address, MIB(200));
    return address;
}

/* 700 MiB at most: weights and twice activations, of which 300 MiB stay. */
static int play_train(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(take_weights() != 0);
    CUdeviceptr first = take_activations(), second = take_activations();
    expect(first != 0 && second != 0);
    expect(cuMemAlloc_v2(&address, MIB(900)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemFree_v2(first) == CUDA_SUCCESS);
    expect(cuMemFree_v2(second) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(20)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    return 0;
}

static int play_train_twice(void)
{
    pid_t child = fork();
    if (child == 0)
        exit(play_train());
    expect(role_wait(child) == 0);
    return play_train();
}

/* Its child has not used CUDA. */
static int play_fork(void)
{
    expect(role_begin() == 0);
    expect(take_weights() != 0);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    expect(role_wait(child) == 0);
    return 0;
}

static int play_idle(void)
{
    return 0;
}

static int play_small_files(void)
{
    const struct rlimit limit = {4096, 4096};
    expect(role_begin() == 0);
    expect(take_weights() != 0);
    return setrlimit(RLIMIT_FSIZE, &limit);
}

static int play_closed(void)
{
    expect(role_begin() == 0);
    return close(STDERR_FILENO);
}

static const struct role roles[] = {{"train", play_train},
                                    {"train twice", play_train_twice},
                                    {"fork", play_fork},
                                    {"idle", play_idle},
                                    {"small files", play_small_files},
                                    {"closed", play_closed},
                                    {0}};

/* ---- in the test ---- */

static struct program program;
static char folder[64], variable[128], report[65536];

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_run_report.XXXXXX");
    report[0] = '\0';
    snprintf(variable, sizeof variable, "GPU_LIMIT_REPORT=%s/%%p.json",
             mkdtemp(folder) ? folder : "");
    return folder[0] == '\0';
}

/* Reads the last of the reports, and returns how many there are. */
static unsigned read_reports(void)
{
    unsigned count = 0;
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    for (struct dirent *file = readdir(open_folder); file; file = readdir(open_folder)) {
        char path[512];
        if (!strstr(file->d_name, ".json"))
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = read(descriptor, report, sizeof report - 1);
        close(descriptor);
        report[length > 0 ? length : 0] = '\0';
    }
    closedir(open_folder);
    return count;
}

static int close_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* The number behind a key, behind a word. */
static unsigned long long number(const char *word, const char *key)
{
    unsigned long long value = 0;
    const char *at = strstr(report, word);
    assert_non_null(at);
    at = strstr(at, key);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(key), ": %llu", &value), 1);
    return value;
}

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

static void test_the_peak_is_reported_with_who_held_it_then(void **state)
{
    (void)state;
    PLAY("train", variable);
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 1);
    assert_int_equal(number("\"devices\"", "\"limit_bytes\""), MIB(1024));
    assert_int_equal(number("\"peak\"", "\"bytes\""), MIB(700));
    /* Two lines of the program, the larger first. */
    const char *sites = strstr(report, "\"sites\"");
    assert_non_null(sites);
    assert_int_equal(number("\"where\"", "\"bytes\""), MIB(400));
    assert_int_equal(number("\"where\"", "\"count\""), 2);
    assert_int_equal(number("\"end\"", "\"bytes\""), MIB(300));
    assert_int_equal(number("\"end\"", "\"count\""), 1);
    assert_int_equal(number("\"end\"", "\"denials\""), 1);
    assert_int_equal(number("\"end\"", "\"denied_bytes\""), MIB(900));
    assert_int_equal(number("\"end\"", "\"largest_bytes\""), MIB(300));
    assert_int_equal(number("\"end\"", "\"allocations_total\""), 4);
    assert_int_equal(number("\"end\"", "\"frees_total\""), 3);
}

static void test_without_stacks_the_sums_are_the_same(void **state)
{
    (void)state;
    PLAY("train", variable, "GPU_LIMIT_STACKS=off");
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 1);
    assert_non_null(strstr(report, "\"where\": \"(unknown)\""));
    assert_int_equal(number("\"where\"", "\"bytes\""), MIB(700));
    assert_int_equal(number("\"where\"", "\"count\""), 3);
    assert_int_equal(number("\"peak\"", "\"idle_bytes\""), 0);
}

static void test_without_a_ledger_there_is_a_report_all_the_same(void **state)
{
    (void)state;
    PLAY("train", variable, "GPU_LIMIT_DIR=/nowhere");
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 1);
    assert_int_equal(number("\"peak\"", "\"bytes\""), MIB(700));
    assert_int_equal(number("\"where\"", "\"bytes\""), MIB(400));
}

static void test_for_people_it_goes_to_stderr(void **state)
{
    (void)state;
    PLAY("train", "GPU_LIMIT_REPORT=stderr", "GPU_LIMIT_VERBOSE=0", "GPU_LIMIT_LOG=none");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "peak 700 MiB of 1024 MiB"));
    assert_non_null(strstr(program.err, "live at exit"));
    assert_null(strstr(program.err, "leak"));
    assert_in_range(program_lines(program.err), 4, 14);
    assert_int_equal(strncmp(program.err, "gpulimit: ", 10), 0);
}

static void test_each_process_that_uses_cuda_has_its_own(void **state)
{
    (void)state;
    PLAY("train twice", variable);
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 2);
}

static void test_who_does_not_use_cuda_has_none(void **state)
{
    (void)state;
    PLAY("idle", variable);
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 0);
    PLAY("fork", variable);
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 1);
    assert_int_equal(number("\"peak\"", "\"bytes\""), MIB(300));
}

static void test_unasked_there_is_none(void **state)
{
    (void)state;
    PLAY("fork", "GPU_LIMIT_MB=1024");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_int_equal(read_reports(), 0);
}

static void test_what_cannot_be_written_harms_nobody(void **state)
{
    (void)state;
    PLAY("small files", variable);
    program_assert_ok(&program);
    assert_int_equal(read_reports(), 0);
    PLAY("closed", "GPU_LIMIT_REPORT=stderr");
    program_assert_ok(&program);
    PLAY("train", "GPU_LIMIT_REPORT=/nowhere/at/all.json");
    program_assert_ok(&program);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_peak_is_reported_with_who_held_it_then,
                                        open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_without_stacks_the_sums_are_the_same, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(test_without_a_ledger_there_is_a_report_all_the_same,
                                        open_folder, close_folder),
        cmocka_unit_test(test_for_people_it_goes_to_stderr),
        cmocka_unit_test_setup_teardown(test_each_process_that_uses_cuda_has_its_own, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(test_who_does_not_use_cuda_has_none, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(test_unasked_there_is_none, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_written_harms_nobody, open_folder,
                                        close_folder),
    };
    if (argc > 1)
        return role_play(roles, argv[1]);
    return cmocka_run_group_tests_name("run report", tests, NULL, NULL);
}
