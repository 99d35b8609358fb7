/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat check: which assertions hold, what is said of those that do not, in all its forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fixture.h"
#include "schema_check.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

static char test_path[512]; /* the run's report as a file */

static void test_make_file(void)
{
    struct tool_result result;
    FILE *file;

    TOOL_RUN(&result, STAT, "report", "-p", "4121", "--json");
    assert_int_equal(result.status, 0);
    snprintf(test_path, sizeof(test_path), "%s/run.json", folder_get_path());
    file = fopen(test_path, "we");
    assert_non_null(file);
    fputs(result.out, file);
    fclose(file);
    tool_forget(&result);
}

static int test_set_up(void **state)
{
    struct fixture fixture;

    folder_open(state);
    report_fixture_open(&fixture);
    folder_add(&fixture, "1", false);
    test_make_file();
    return 0;
}

static void test_expect(const char *const words[], int status, const char *out, const char *err)
{
    struct tool_result result;

    tool_run(words, &result);
    assert_string_equal(result.out, out);
    assert_string_equal(result.err, err);
    assert_int_equal(result.status, status);
    tool_forget(&result);
}

#define EXPECT(_status, _out, ...)                                                                 \
    test_expect((const char *const[]){STAT, "check", __VA_ARGS__, NULL}, _status, _out, "")

#define AT_THE_PEAK                                                                                \
    "    640 MiB  model.py:31 load_state_dict (6 allocations)\n"                                   \
    "    128 MiB  model.py:58 forward (3 allocations)\n"                                           \
    "     32 MiB  solver+0x4010 (1 allocation)\n"                                                  \
    "    100 MiB  idle in pools\n"                                                                 \
    "    100 MiB  overhead: context, code, streams\n"

static void test_what_holds_is_one_line(void **state)
{
    (void)state;
    EXPECT(0, "ok: 1 assertion holds\n", "--max-denials", "3", "-p", "4121");
    EXPECT(0, "ok: 4 assertions hold\n", "--peak-below", "1048576001", "--max-denials", "3",
           "--max-live-at-exit", "640MiB", "--compare", test_path, test_path);
}

static void test_below_is_not_as_much(void **state)
{
    (void)state;
    EXPECT(0, "ok: 1 assertion holds\n", "--peak-below", "1048576001", test_path);
    EXPECT(1,
           "FAILED GPU 0: peak 1000 MiB, not below 1000 MiB; held by\n" AT_THE_PEAK
           "1 of 1 assertions failed\n",
           "--peak-below", "1000M", test_path);
}

static void test_what_fails_is_told_with_who_held_the_memory(void **state)
{
    (void)state;
    EXPECT(1,
           "FAILED GPU 0: peak 1000 MiB, not below 900 MiB; held by\n" AT_THE_PEAK
           "FAILED GPU 0: 3 requests refused, more than 2; at the peak it was held by\n" AT_THE_PEAK
           "FAILED GPU 0: 640 MiB live at exit, more than 0 bytes; held by\n"
           "    640 MiB  model.py:31 load_state_dict (6 allocations)\n"
           "3 of 3 assertions failed\n",
           "--peak-below", "900MiB", "--max-denials", "2", "--max-live-at-exit", "0", "-p", "4121");
}

/* A base whose peak was 960 MiB: 1000 MiB are 4.2 per cent more. */
static void test_a_run_is_compared_with_another(void **state)
{
    char path[512];
    char out[2048];
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "%s/base.json", folder_get_path());
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("{\"schema\": \"gpulimit.report/1\", \"library_version\": \"0.1.0\", \"pid\": 1, "
          "\"uid\": 0, \"state\": \"exited\", \"command\": [], \"count_mode\": \"process\", "
          "\"limit_text\": null, \"start_time\": null, \"end_time\": null, \"devices\": [{"
          "\"gpu_index\": 0, \"gpu_uuid\": \"GPU-1\", \"limit_bytes\": null, "
          "\"peak\": {\"bytes\": 1006632960, \"after_seconds\": 1, \"sites\": [], "
          "\"others\": {\"sites\": 0, \"bytes\": 0}, \"idle_bytes\": 1006632960, "
          "\"overhead_bytes\": 0}, \"end\": {\"bytes\": 0, \"sites\": [], "
          "\"others\": {\"sites\": 0, \"bytes\": 0}, \"idle_bytes\": 0, \"overhead_bytes\": 0}, "
          "\"requested_bytes\": 0, \"committed_bytes\": 0, \"live_allocations\": 0, "
          "\"allocations_total\": 0, \"frees_total\": 0, \"largest_bytes\": 0, \"denials\": 0, "
          "\"denials_recovered\": 0, \"denied_bytes\": 0, \"driver_denials\": 0, "
          "\"of a later release\": 1}]}",
          file);
    fclose(file);
    EXPECT(0, "ok: 1 assertion holds\n", "--compare", path, "--tolerance", "5%", test_path);
    EXPECT(0, "ok: 1 assertion holds\n", "--compare", path, "--tolerance", "4.2", test_path);
    snprintf(out, sizeof(out),
             "FAILED GPU 0: peak 1000 MiB, more than 998.4 MiB (%s and 4%%); "
             "held by\n" AT_THE_PEAK "1 of 1 assertions failed\n",
             path);
    EXPECT(1, out, "--compare", path, "--tolerance", "4%", "-p", "4121");
    snprintf(out, sizeof(out),
             "FAILED GPU 0: peak 1000 MiB, more than 960 MiB (%s); held by\n" AT_THE_PEAK
             "1 of 1 assertions failed\n",
             path);
    EXPECT(1, out, "--compare", path, "-p", "4121");
}

static void test_the_outcome_is_json(void **state)
{
    struct tool_result result;
    json_t *assertions;
    json_t *second;
    json_t *root;

    (void)state;
    TOOL_RUN(&result, STAT, "check", "--json", "--peak-below", "2G", "--max-live-at-exit", "1M",
             test_path);
    assert_int_equal(result.status, 1);
    schema_check("check", result.out);
    root = json_loads(result.out, 0, NULL);
    assert_true(json_is_false(json_object_get(root, "is_ok")));
    assertions = json_object_get(root, "assertions");
    assert_int_equal(json_array_size(assertions), 2);
    assert_true(json_is_true(json_object_get(json_array_get(assertions, 0), "is_ok")));
    second = json_array_get(assertions, 1);
    assert_string_equal(json_string_value(json_object_get(second, "name")), "max_live_at_exit");
    assert_int_equal(json_integer_value(json_object_get(second, "expected")), 1 << 20);
    assert_int_equal(json_integer_value(json_object_get(second, "actual")), 640 << 20);
    assert_int_equal(json_array_size(json_object_get(second, "sites")), 1);
    json_decref(root);
    tool_forget(&result);
}

static void test_read(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void test_the_outcome_is_junit(void **state)
{
    struct tool_result result;
    char path[512];
    char text[4096];

    (void)state;
    snprintf(path, sizeof(path), "%s/junit.xml", folder_get_path());
    for (int i = 0; i < 2; i++) { /* the second writes over the first */
        TOOL_RUN(&result, STAT, "check", "--max-denials", "3", "--max-live-at-exit", "0", "--junit",
                 path, test_path);
        assert_int_equal(result.status, 1);
        tool_forget(&result);
    }
    test_read(path, text, sizeof(text));
    assert_string_equal(
        text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<testsuite name=\"gpulimit\" tests=\"2\" failures=\"1\">\n"
              "  <testcase classname=\"gpulimit.check\" name=\"GPU 0 max_denials\"/>\n"
              "  <testcase classname=\"gpulimit.check\" name=\"GPU 0 max_live_at_exit\">\n"
              "    <failure message=\"GPU 0: 640 MiB live at exit, more than 0 bytes\">"
              "    640 MiB  model.py:31 load_state_dict (6 allocations)\n"
              "</failure>\n"
              "  </testcase>\n"
              "</testsuite>\n");
    TOOL_RUN(&result, STAT, "check", "--max-denials", "3", "--junit", "/nonexistent/j.xml",
             test_path);
    assert_int_equal(result.status, 1);
    assert_string_equal(result.err, "gpulimit-stat: /nonexistent/j.xml: No such file or "
                                    "directory\n");
    tool_forget(&result);
}

/* Names that a program gave itself must not become markup. */
static void test_junit_is_xml_whatever_the_names(void **state)
{
    struct tool_result result;
    struct fixture fixture;
    char path[512];
    char text[4096];

    (void)state;
    fixture_open(&fixture, 9);
    fixture.header->pid = 4122;
    fixture_add_device(&fixture, 0);
    fixture_add_sites(&fixture);
    fixture_put_python(&fixture, fixture_put_site(&fixture), "a&b.py", "<\"f'\x1b\xff>]]>", 1);
    fixture_add_tally(&fixture, 0, 1, 64 * FIXTURE_MIB, 1, 0);
    folder_add(&fixture, "2", false);
    snprintf(path, sizeof(path), "%s/junit.xml", folder_get_path());
    TOOL_RUN(&result, STAT, "check", "--max-live-at-exit", "0", "--junit", path, "-p", "4122");
    assert_int_equal(result.status, 1);
    tool_forget(&result);
    test_read(path, text, sizeof(text));
    assert_non_null(strstr(text, "  a&amp;b.py:1 &lt;&quot;f&apos;?\\xff&gt;]]&gt; (1"));
}

static void test_a_run_without_a_gpu_is_told(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 9);
    fixture.header->pid = 4122;
    folder_add(&fixture, "2", false);
    test_expect((const char *const[]){STAT, "check", "--max-denials", "0", "-p", "4122", NULL}, 0,
                "ok: 0 assertions hold\n",
                "gpulimit-stat: that run has used no GPU, so there was nothing to check\n");
}

static void test_what_cannot_be_read_is_neither_ok_nor_failed(void **state)
{
    (void)state;
    test_expect((const char *const[]){STAT, "check", "--max-denials", "0", "/dev/null", NULL}, 3,
                "", "gpulimit-stat: /dev/null: is no report: line 1 is no JSON\n");
    test_expect((const char *const[]){STAT, "check", "--compare", "/dev/null", test_path, NULL}, 3,
                "", "gpulimit-stat: /dev/null: is no report: line 1 is no JSON\n");
}

static void test_the_command_line_is_understood_or_refused(void **state)
{
#define USAGE(_complaint, ...)                                                                     \
    test_expect((const char *const[]){STAT, __VA_ARGS__, NULL}, 2, "",                             \
                "gpulimit-stat: " _complaint "\nTry 'gpulimit-stat --help'.\n")
#define ABOUT                                                                                      \
    "check is about one process, -p, or one file (example: check --max-denials 0 run.json)"

    (void)state;
    USAGE("check what? (--peak-below, --max-denials, --max-live-at-exit, --compare)", "check", "a");
    USAGE(ABOUT, "check", "--max-denials", "0");
    USAGE(ABOUT, "check", "--max-denials", "0", "-p", "1,2");
    USAGE(ABOUT, "check", "--max-denials", "0", "a", "b");
    USAGE("--tolerance goes with --compare", "check", "--max-denials", "0", "--tolerance", "5%",
          "a");
    USAGE("--tolerance is a number of per cent such as 5% or 0.5%, not '5%%'", "check",
          "--tolerance", "5%%");
    USAGE("--max-denials is a number from 0, not '-1'", "check", "--max-denials", "-1");
    USAGE("--peak-below is a size such as 4096, 64K or 1.5G, not '9MB'", "check", "--peak-below",
          "9MB");
    USAGE("assertions go with check (example: check --max-denials 0 run.json)", "report", "-p", "1",
          "--peak-below", "1G");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(_name) cmocka_unit_test_setup_teardown(_name, test_set_up, folder_close)
        TEST(test_what_holds_is_one_line),
        TEST(test_below_is_not_as_much),
        TEST(test_what_fails_is_told_with_who_held_the_memory),
        TEST(test_a_run_is_compared_with_another),
        TEST(test_the_outcome_is_json),
        TEST(test_the_outcome_is_junit),
        TEST(test_junit_is_xml_whatever_the_names),
        TEST(test_a_run_without_a_gpu_is_told),
        TEST(test_what_cannot_be_read_is_neither_ok_nor_failed),
        TEST(test_the_command_line_is_understood_or_refused),
    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
