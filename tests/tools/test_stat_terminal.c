/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat on a terminal: colours, width, hints, and streaming with its headings and its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool_run.h"

#define STAT "gpulimit-stat"

static size_t test_count(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part)) {
        count++;
    }
    return count;
}

/* 4121 at 95 % with denials, 4122 at 80 %, 4123 stale, all with long commands. */
static int test_set_up(void **state)
{
    static const char long_command[] =
        "python\0a-very-long-name-of-some-training-program-that-goes-on-and-on.py";

    folder_open(state);
    for (int32_t i = 0; i < 3; i++) {
        struct gpulimit_device *device;
        struct fixture fixture;

        fixture_open(&fixture, 60);
        fixture.header->pid = 4121 + i;
        fixture_set_command(&fixture, long_command, sizeof(long_command));
        device = fixture_add_device(&fixture, 0);
        device->charged_bytes = (i == 0 ? 973 : 820) * FIXTURE_MIB;
        device->denials = i == 0 ? 2 : 0;
        folder_add(&fixture, i == 0 ? "1" : i == 1 ? "2" : "3", i < 2);
    }
    return 0;
}

static void test_colors_mark_use_and_denials_on_a_terminal(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN_ON_TERMINAL(&result, 24, 120, STAT, "-a");
    assert_non_null(strstr(result.out, "\033[31m 95%"));
    assert_non_null(strstr(result.out, "\033[33m 80%"));
    assert_non_null(strstr(result.out, "\033[1;31m     2"));
    assert_non_null(strstr(result.out, "\033[2m"));
    tool_forget(&result);
}

static void test_colors_are_off_where_nobody_wants_them(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-a");
    assert_null(strchr(result.out, '\033'));
    tool_forget(&result);
    TOOL_RUN_ON_TERMINAL(&result, 24, 120, STAT, "-a", "--color=never");
    assert_null(strchr(result.out, '\033'));
    tool_forget(&result);
    setenv("NO_COLOR", "1", 1);
    TOOL_RUN_ON_TERMINAL(&result, 24, 120, STAT, "-a");
    assert_null(strchr(result.out, '\033'));
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "-a", "--color=always"); /* who says so outright gets it */
    assert_non_null(strchr(result.out, '\033'));
    tool_forget(&result);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    TOOL_RUN_ON_TERMINAL(&result, 24, 120, STAT, "-a");
    assert_null(strchr(result.out, '\033'));
    tool_forget(&result);
    setenv("TERM", "xterm", 1);
}

static void test_commands_are_cut_at_the_terminals_edge_only(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN_ON_TERMINAL(&result, 24, 80, STAT, "--color=never");
    assert_int_equal(test_count(result.out, "\n"), 3);
    for (const char *line = strtok(result.out, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 80);
    }
    tool_forget(&result);
    TOOL_RUN(&result, STAT);
    assert_int_equal(test_count(result.out, "goes-on-and-on.py\n"), 2);
    tool_forget(&result);
}

static void test_narrow_terminals_have_fewer_columns(void **state)
{
    static const struct {
        unsigned short width;
        bool has_overhead, has_allocs, has_untracked;
    } terminals[] = {{66, false, false, false},
                     {75, true, false, false},
                     {84, true, true, false},
                     {120, true, true, true},
                     {0, true, true, true}};
    const struct passwd *user = getpwuid(geteuid());
    size_t longer = user && strlen(user->pw_name) > 4 ? strlen(user->pw_name) - 4 : 0;

    (void)state;
    for (size_t i = 0; i < sizeof(terminals) / sizeof(terminals[0]); i++) {
        struct tool_result result;

        if (terminals[i].width > 0) {
            TOOL_RUN_ON_TERMINAL(&result, 24, (unsigned short)(terminals[i].width + longer), STAT,
                                 "--color=never");
        } else {
            TOOL_RUN(&result, STAT); /* a script gets all */
        }
        assert_int_equal(test_count(result.out, " OVERHEAD "), terminals[i].has_overhead);
        assert_int_equal(test_count(result.out, " ALLOCS "), terminals[i].has_allocs);
        assert_int_equal(test_count(result.out, " UNTRACKED "), terminals[i].has_untracked);
        assert_int_equal(test_count(result.out, " DENIED "), 1);
        tool_forget(&result);
    }
}

static void test_short_command_is_not_cut_for_another_column(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4131;
    fixture_add_device(&fixture, 0);
    folder_add(&fixture, "short", true);
    for (unsigned short width = 70; width < 110; width++) {
        TOOL_RUN_ON_TERMINAL(&result, 24, width, STAT, "-p", "4131");
        assert_non_null(strstr(result.out, " python train.py\n"));
        tool_forget(&result);
    }
}

static void test_notebook_is_not_cut_off(void **state)
{
    static const char command[] =
        "/usr/bin/python3\0-m\0ipykernel_launcher\0-f\0/run/kernel-1.json";
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4131;
    strcpy(fixture.header->notebook, "/nfs/anna/lab3.ipynb");
    fixture_set_command(&fixture, command, sizeof(command));
    fixture_add_device(&fixture, 0);
    folder_add(&fixture, "notebook", true);
    TOOL_RUN_ON_TERMINAL(&result, 24, 84, STAT, "-p", "4131");
    assert_non_null(strstr(result.out, " python3 [lab3.ipynb]\n"));
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "-p", "4131");
    assert_non_null(
        strstr(result.out,
               " /usr/bin/python3 -m ipykernel_launcher -f /run/kernel-1.json [lab3.ipynb]\n"));
    tool_forget(&result);
}

static void test_nothing_to_show_gives_headings_and_a_hint(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN_ON_TERMINAL(&result, 24, 80, STAT, "-g", "5");
    assert_non_null(strstr(result.out, "GPU "));
    assert_non_null(strstr(result.out, "No process under libgpulimit.so fits"));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_stream_keeps_its_columns_and_its_pace(void **state)
{
    struct tool_result result;
    struct timespec before;
    struct timespec after;
    double seconds;

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &before);
    TOOL_RUN(&result, STAT, "0.2", "4");
    clock_gettime(CLOCK_MONOTONIC, &after);
    seconds =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    assert_true(seconds >= 0.6);
    assert_int_equal(test_count(result.out, "GPU"), 1); /* a script needs it once */
    assert_int_equal(test_count(result.out, "\n"), 9);
    assert_int_equal(test_count(result.out, "  0   4121 "), 4);
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_stream_repeats_headings_as_the_screen_fills(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN_ON_TERMINAL(&result, 6, 120, STAT, "0.1", "6", "-p", "4121");
    assert_int_equal(test_count(result.out, "GPU"), 2);
    tool_forget(&result);
}

static void test_interrupt_ends_the_stream_quietly(void **state)
{
    (void)state;
    assert_int_equal(tool_interrupt((const char *const[]){STAT, "0.2", NULL}, SIGINT), 130);
    assert_int_equal(tool_interrupt((const char *const[]){STAT, "--json", "0.2", NULL}, SIGINT),
                     130);
}

static void test_broken_pipe_ends_the_stream(void **state)
{
    (void)state;
    assert_int_equal(tool_interrupt((const char *const[]){STAT, "0.1", NULL}, SIGPIPE),
                     128 + SIGPIPE);
}

static void test_stream_of_nobody_fails_at_once(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "-p", "4123", "0.1");
    assert_int_equal(result.status, 1);
    assert_string_equal(result.out, "");
    tool_forget(&result);
}

/* A shell waits a little and ends 4121 by taking its ledger away. */
static void test_stream_of_a_process_ends_with_it(void **state)
{
    struct tool_result result;
    pid_t child;

    (void)state;
    child = fork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "sleep 0.5; rm \"$GPU_LIMIT_DIR/gpulimit.1\"", NULL);
        _exit(1);
    }
    TOOL_RUN(&result, STAT, "-p", "4121", "-n", "0.1");
    assert_int_equal(result.status, 0);
    assert_true(test_count(result.out, " 4121 ") >= 1);
    assert_non_null(strstr(result.err, "process 4121"));
    tool_forget(&result);
    waitpid(child, NULL, 0);
}

#define TEST(_function) cmocka_unit_test_setup_teardown(_function, test_set_up, folder_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_colors_mark_use_and_denials_on_a_terminal),
        TEST(test_colors_are_off_where_nobody_wants_them),
        TEST(test_commands_are_cut_at_the_terminals_edge_only),
        TEST(test_narrow_terminals_have_fewer_columns),
        TEST(test_short_command_is_not_cut_for_another_column),
        TEST(test_notebook_is_not_cut_off),
        TEST(test_nothing_to_show_gives_headings_and_a_hint),
        TEST(test_stream_keeps_its_columns_and_its_pace),
        TEST(test_stream_repeats_headings_as_the_screen_fills),
        TEST(test_interrupt_ends_the_stream_quietly),
        TEST(test_broken_pipe_ends_the_stream),
        TEST(test_stream_of_nobody_fails_at_once),
        TEST(test_stream_of_a_process_ends_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
