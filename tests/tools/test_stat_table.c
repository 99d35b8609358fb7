/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat's table of processes: what it shows to a script, what it leaves out, and how it
 * ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_run.h"

#define STAT "gpulimit-stat"

/* Whoever runs the test owns the ledgers. */
static const char *test_get_user(void)
{
    static char number[16];
    const struct passwd *entry = getpwuid(geteuid());

    snprintf(number, sizeof(number), "%u", geteuid());
    return entry ? entry->pw_name : number;
}

/* The golden text has USER for the column's heading and @ for each cell: put the name and its width
 * in. */
static void test_expect(const char *actual, const char *golden)
{
    const char *user = test_get_user();
    int width = strlen(user) > 4 ? (int)strlen(user) : 4;
    char expected[4096];
    char *end = expected;

    for (; *golden != '\0'; golden++) {
        if (strncmp(golden, "USER", 4) == 0) {
            end += sprintf(end, "%-*s", width, "USER");
            golden += 3;
        } else if (*golden == '@') {
            end += sprintf(end, "%-*s", width, user);
        } else {
            *end++ = *golden;
        }
    }
    *end = '\0';
    assert_string_equal(actual, expected);
}

/* 4121 live on GPU 0, 4122 live on GPU 0 and 1 without a limit on 1, 4123 exited, 4124 stale. */
static int test_set_up(void **state)
{
    static const struct {
        const char *name;
        int32_t pid;
        bool is_live;
        uint64_t ended_time_ns;
    } processes[] = {
        {"1", 4121, true, 0}, {"2", 4122, true, 0}, {"3", 4123, false, 1}, {"4", 4124, false, 0}};

    folder_open(state);
    for (size_t i = 0; i < 4; i++) {
        struct gpulimit_device *device;
        struct fixture fixture;

        fixture_open(&fixture, 2 * 3600 + 14 * 60 + 30);
        fixture.header->pid = processes[i].pid;
        fixture.header->ended_time_ns = processes[i].ended_time_ns;
        device = fixture_add_device(&fixture, 0);
        device->charged_bytes = 901 * FIXTURE_MIB + FIXTURE_MIB / 4 - i;
        device->denials = i == 0 ? 3 : 0;
        device->overhead_bytes = 518 * FIXTURE_MIB;
        device->truth_source = i == 0 ? GPULIMIT_TRUTH_NVML : GPULIMIT_TRUTH_OFF;
        if (i == 1) {
            fixture_add_device(&fixture, 1)->limit_bytes = GPULIMIT_NO_LIMIT;
            strcpy(fixture.header->notebook, "/nfs/anna/lab3.ipynb");
            fixture_set_command(&fixture, "python\0-m\0ipykernel", sizeof("python\0-m\0ipykernel"));
        }
        folder_add(&fixture, processes[i].name, processes[i].is_live);
    }
    return 0;
}

static void test_live_processes_are_listed_by_use(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT);
    test_expect(
        result.out,
        "GPU  PID USER   USED LIMIT USE% PEAK OVERHEAD UNTRACKED ALLOCS DENIED   AGE COMMAND\n"
        "  0 4121 @ 901.2M 1024M  88% 128M     518M         -      1      3 2h14m python train.py\n"
        "  0 4122 @ 901.2M 1024M  88% 128M        -         -      1      0 2h14m python -m ipykernel [lab3.ipynb]\n"
        "  1 4122 @    64M     -    - 128M        -         -      1      0 2h14m python -m ipykernel [lab3.ipynb]\n");
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_all_shows_ended_processes_and_their_state(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-a", "-g", "0", "--noheadings", "-b");
    test_expect(
        result.out,
        "  0 4121 @ 945029120 1073741824  88% 134217728 543162368         -      1      3 2h14m live   python train.py\n"
        "  0 4122 @ 945029119 1073741824  88% 134217728         -         -      1      0 2h14m live   python -m ipykernel [lab3.ipynb]\n"
        "  0 4123 @ 945029118 1073741824  88% 134217728         -         -      1      0 2h14m exited python train.py\n"
        "  0 4124 @ 945029117 1073741824  88% 134217728         -         -      1      0 2h14m stale  python train.py\n");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_filters_choose_by_pid_user_and_gpu(void **state)
{
    static const struct {
        const char *option, *value;
        int lines;
    } filters[] = {
        {"-p", "4121", 1}, {"-p", "4121,4122", 3},    {"--pid", "4122", 2},     {"-g", "1", 1},
        {"-g", "0,1", 3},  {"-g", "GPU-0000abc1", 1}, {"-g", "0000ABC0-11", 2}, {"-g", "GPU-f", 0},
        {"-g", "7", 0},    {"-u", "0", -1},
    };
    char uid[16];

    (void)state;
    snprintf(uid, sizeof(uid), "%u", geteuid());
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        struct tool_result result;
        int lines = 0;

        TOOL_RUN(&result, STAT, "-n", filters[i].option,
                 filters[i].lines < 0 ? uid : filters[i].value);
        for (const char *at = result.out; *at != '\0'; at++) {
            lines += *at == '\n';
        }
        assert_int_equal(lines, filters[i].lines < 0 ? 3 : filters[i].lines);
        assert_int_equal(result.status, 0);
        tool_forget(&result);
    }
}

static void test_missing_pid_is_a_failure_with_one_line(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-p", "9999,4121", "-n");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "4121"));
    assert_non_null(strstr(result.err, "process 9999 has no ledger"));
    assert_ptr_equal(strchr(result.err, '\n') + 1, result.err + strlen(result.err));
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "-p", "4123");
    assert_int_equal(result.status, 1);
    assert_string_equal(result.out, "");
    assert_non_null(strstr(result.err, "has ended"));
    tool_forget(&result);
}

static void test_nothing_to_show_is_no_failure_and_no_output(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-u", "65533");
    assert_string_equal(result.out, "");
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_missing_folder_is_a_failure(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "--ledger-dir", "/nonexistent", "--ledger-dir", folder_get_path());
    assert_int_equal(result.status, 1);
    assert_string_equal(
        result.err, "gpulimit-stat: /nonexistent cannot be opened: No such file or directory\n");
    assert_non_null(strstr(result.out, "4121"));
    tool_forget(&result);
}

static void test_wrong_use_is_told_with_status_2(void **state)
{
    static const struct {
        const char *words[3];
        const char *complaint;
    } uses[] = {
        {{"alocs"}, "unknown verb 'alocs'; did you mean 'allocs'?"},
        {{"hook"}, "did you mean 'hooks'?"},
        {{"frobnicate"}, "unknown verb 'frobnicate'\n"},
        {{"--jsno"}, "unknown option"},
        {{"-x"}, "unknown option '-x'"},
        {{"-p"}, "'-p' needs a value"},
        {{"-p", "x"}, "'x' is not a process id"},
        {{"-p", "1,"}, NULL},
        {{"-p", "0"}, "'0' is not a process id"},
        {{"-u", "no-such-user"}, "there is no user"},
        {{"-g", ","}, "no GPU"},
        {{"0"}, "DELAY"},
        {{"0.05"}, "DELAY"},
        {{"1", "0"}, "COUNT"},
        {{"1", "2", "3"}, "one word too many, '3'"},
        {{"--color", "blue"}, "auto, always or never"},
        {{"allocs", "--by", "moon"}, "known: site, python, api, kind, tag, stream, thread, size"},
        {{"allocs", "--older-than=1w"}, "--older-than is an age such as 90, 10m"},
        {{"allocs", "--older-than=m"}, "not 'm'"},
        {{"allocs", "--older-than="}, "--older-than"},
        {{"allocs", "-l", "-v"}, "--list has no groups"},
        {{"allocs", "--min-size=1Q"}, "--min-size"},
        {{"allocs", "--top=0"}, "--top"},
        {{"--allocs"}, "--allocs goes with --json"},
        {{"hooks", "1"}, "hooks takes no further words"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        const char *const *words = uses[i].words;
        struct tool_result result;

        tool_run((const char *const[]){STAT, words[0], words[1], words[2], NULL}, &result);
        if (uses[i].complaint) {
            assert_int_equal(result.status, 2);
            assert_string_equal(result.out, "");
            assert_non_null(strstr(result.err, uses[i].complaint));
            assert_non_null(strstr(result.err, "--help"));
        }
        tool_forget(&result);
    }
}

static void test_help_and_version_go_to_stdout(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-h");
    assert_int_equal(result.status, 0);
    assert_string_equal(result.err, "");
    assert_non_null(strstr(result.out, "--ledger-dir"));
    assert_non_null(strstr(result.out, "overhead_bytes"));
    assert_non_null(strstr(result.out, "untracked_bytes"));
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "--version");
    assert_int_equal(result.status, 0);
    assert_int_equal(strncmp(result.out, "gpulimit-stat 0.", 16), 0);
    tool_forget(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_processes_are_listed_by_use),
        cmocka_unit_test(test_all_shows_ended_processes_and_their_state),
        cmocka_unit_test(test_filters_choose_by_pid_user_and_gpu),
        cmocka_unit_test(test_missing_pid_is_a_failure_with_one_line),
        cmocka_unit_test(test_nothing_to_show_is_no_failure_and_no_output),
        cmocka_unit_test(test_missing_folder_is_a_failure),
        cmocka_unit_test(test_wrong_use_is_told_with_status_2),
        cmocka_unit_test(test_help_and_version_go_to_stdout),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
