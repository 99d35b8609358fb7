/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat among damaged, forbidden and hostile ledgers: it names the file, shows the rest,
 * and lets nobody write on its user's terminal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool_run.h"

#define STAT "gpulimit-stat"

static int test_set_up(void **state)
{
    struct fixture fixture;

    folder_open(state);
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    folder_add(&fixture, "good", true);
    return 0;
}

static void test_damaged_ledger_is_named_and_the_rest_shown(void **state)
{
    struct tool_result result;
    struct fixture fixture;
    char expected[256];

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->entry_bytes = 7;
    folder_add(&fixture, "bad", true);
    snprintf(expected, sizeof(expected), "gpulimit-stat: %s/gpulimit.bad has entries of 7 bytes\n",
             folder_get_path());

    TOOL_RUN(&result, STAT);
    assert_int_equal(result.status, 3);
    assert_non_null(strstr(result.out, "4121"));
    assert_string_equal(result.err, expected);
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "--json");
    assert_int_equal(result.status, 3);
    assert_non_null(strstr(result.out, "\"pid\": 4121"));
    assert_non_null(strstr(result.out, "\"code\": \"damaged\""));
    assert_non_null(strstr(result.out, "\"message\": \"has entries of 7 bytes\""));
    assert_non_null(strstr(result.out, "gpulimit.bad\""));
    tool_forget(&result);
}

static void test_other_names_are_nobodys_business(void **state)
{
    char path[128];
    struct tool_result result;
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "%s/gpulimi", folder_get_path());
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("garbage", file);
    fclose(file);
    TOOL_RUN(&result, STAT);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_ledger_in_the_making_is_not_mentioned(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 0);
    memset(fixture.header->magic, 0, sizeof(fixture.header->magic));
    folder_add(&fixture, "new", true);
    TOOL_RUN(&result, STAT);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_torn_counters_are_shown_with_a_warning(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4130;
    fixture_add_device(&fixture, 0)->sequence = 1;
    folder_add(&fixture, "torn", false);
    TOOL_RUN(&result, STAT, "-a", "-p", "4130");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "4130"));
    assert_non_null(strstr(result.err, "half-written counters for GPU 0"));
    tool_forget(&result);
}

static void test_what_the_driver_refused_is_a_warning_and_a_number(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4131;
    fixture_add_device(&fixture, 0)->driver_denials = 3;
    folder_add(&fixture, "full", true);
    TOOL_RUN(&result, STAT, "-p", "4131");
    assert_string_equal(result.err,
                        "gpulimit-stat: process 4131 was refused 3 requests on GPU 0 by "
                        "the driver itself, not by the limit: the card is full, or "
                        "was\n");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "--json", "-p", "4131");
    assert_non_null(strstr(result.out, "\"driver_denials\": 3"));
    assert_non_null(strstr(result.out, "\"code\": \"driver\""));
    tool_forget(&result);
}

/* As root it is not forbidden; then there is nothing to test but that all is well. */
static void test_ledger_of_another_is_one_line_and_status_3(void **state)
{
    struct tool_result result;
    struct fixture fixture;
    char path[128];
    bool is_root = geteuid() == 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture_open(&fixture, 60);
        fixture.header->pid = 4140 + i;
        folder_add(&fixture, i == 0 ? "other0" : "other1", false);
        snprintf(path, sizeof(path), "%s/gpulimit.other%d", folder_get_path(), i);
        assert_int_equal(chmod(path, 0), 0);
    }
    TOOL_RUN(&result, STAT);
    assert_int_equal(result.status, is_root ? 0 : 3);
    assert_string_equal(result.err, is_root ? "" : "gpulimit-stat: 2 ledgers may not be read\n");
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "-p", "4121"); /* found, so the others do not matter */
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_hostile_names_cannot_write_on_the_terminal(void **state)
{
    static const char command[] = "py\033]0;owned\007\0\r\n\x9b"
                                  "2J\0\xc2\x9b"
                                  "31m\0\xe2\x80\xae"
                                  "gnp\0\xff\xc0\x80\0caf\xc3\xa9";
    static const char shown[] = "py\\x1b]0;owned\\x07 \\x0d\\x0a\\x9b2J \\u009b31m \\u202egnp "
                                "\\xff\\xc0\\x80 caf\xc3\xa9 [\\x1b[31m.ipynb]\n";
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4150;
    strcpy(fixture.header->notebook, "/x/\033[31m.ipynb");
    fixture_set_command(&fixture, command, sizeof(command));
    fixture_add_device(&fixture, 0);
    folder_add(&fixture, "hostile\033[31m", true);
    TOOL_RUN(&result, STAT, "-p", "4150", "--color=never");
    assert_non_null(strstr(result.out, shown));
    assert_null(strchr(result.out, '\033'));
    tool_forget(&result);

    setenv("LC_ALL", "C", 1);
    TOOL_RUN(&result, STAT, "-p", "4150");
    assert_non_null(strstr(result.out, "caf\\u00e9"));
    tool_forget(&result);
    setenv("LC_ALL", "C.UTF-8", 1);
}

static void test_hostile_file_and_api_names_cannot_either(void **state)
{
    struct tool_result result;
    struct gpulimit_entry *entries;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4151;
    memcpy(fixture.image + fixture.header->extents[0].offset, "\033[1mX", 6);
    fixture_add_device(&fixture, 0)->sequence = 1;
    entries = fixture_add_entries(&fixture, 1);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(1, 0, 0), 2, 1);
    folder_add(&fixture, "a\033[31mb", true);
    TOOL_RUN(&result, STAT, "allocs", "-p", "4151");
    assert_non_null(strstr(result.out, "\\x1b[1mX"));
    assert_non_null(strstr(result.err, "gpulimit.a\\x1b[31mb has half-written"));
    assert_null(strchr(result.out, '\033'));
    assert_null(strchr(result.err, '\033'));
    tool_forget(&result);
}

#define TEST(_function) cmocka_unit_test_setup_teardown(_function, test_set_up, folder_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_damaged_ledger_is_named_and_the_rest_shown),
        TEST(test_other_names_are_nobodys_business),
        TEST(test_ledger_in_the_making_is_not_mentioned),
        TEST(test_torn_counters_are_shown_with_a_warning),
        TEST(test_what_the_driver_refused_is_a_warning_and_a_number),
        TEST(test_ledger_of_another_is_one_line_and_status_3),
        TEST(test_hostile_names_cannot_write_on_the_terminal),
        TEST(test_hostile_file_and_api_names_cannot_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
