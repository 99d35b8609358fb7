/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat allocs --growing: a leak, a cache and a model's weights, as its user sees them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema_check.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

enum { LIFE = 80000, WINDOW = 10000, LEAKS = 70, CACHED = 4, WEIGHTS = 10 };

static void test_put_line(struct fixture *fixture, uint32_t line, const char *function)
{
    uint32_t site = fixture_put_site(fixture);

    fixture_put_native(fixture, site, 1, 0x100);
    fixture_put_python(fixture, site, "/srv/nets/train.py", function, line);
}

static void test_fill(const struct fixture *fixture, struct gpulimit_entry *entry, uint32_t site,
                      unsigned int size_mib, unsigned int age_seconds)
{
    fixture_fill_entry(fixture, entry, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0), size_mib,
                       age_seconds);
    entry->site = site;
}

/* Process 4121 holds weights since its start, what its last steps asked for, and 20 MiB of each
 * thousand seconds; 4122 weights alone. The ages are half a minute past the one that is shown. */
static int test_set_up(void **state)
{
    struct gpulimit_entry *entries;
    struct fixture fixture;

    folder_open(state);
    fixture_open(&fixture, LIFE);
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, LEAKS + CACHED + WEIGHTS);
    fixture_add_sites(&fixture);
    fixture_put_module(&fixture, "/opt/gpulimit/lib/libgpulimit.so");
    test_put_line(&fixture, 12, "load");
    test_put_line(&fixture, 31, "forward");
    test_put_line(&fixture, 47, "log_loss");
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        test_fill(&fixture, entries++, 1, 64, LIFE - 30);
    }
    for (uint32_t i = 0; i < CACHED; i++) {
        test_fill(&fixture, entries++, 2, 100, 5430);
    }
    for (uint32_t i = 0; i < LEAKS; i++) {
        test_fill(&fixture, entries++, 3, 20, LIFE - WINDOW - 30 - 998 * i);
    }
    fixture_add_tally(&fixture, 0, 1, 64 * WEIGHTS * FIXTURE_MIB, WEIGHTS, 0);
    fixture_add_tally(&fixture, 0, 2, 100 * CACHED * FIXTURE_MIB, 38, 38 - CACHED);
    fixture_add_tally(&fixture, 0, 3, 20 * LEAKS * FIXTURE_MIB, LEAKS, 0);
    folder_add(&fixture, "1", true);

    fixture_open(&fixture, LIFE);
    fixture.header->pid = 4122;
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, WEIGHTS);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        test_fill(&fixture, entries++, 0, 64, LIFE - 30);
    }
    folder_add(&fixture, "2", true);
    return 0;
}

static void test_expect(const char *const words[], const char *golden)
{
    struct tool_result result;

    tool_run(words, &result);
    assert_string_equal(result.out, golden);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

#define EXPECT(_golden, ...)                                                                       \
    test_expect((const char *const[]){STAT, "allocs", "--growing", __VA_ARGS__, NULL}, _golden)

static void test_the_leak_comes_first_and_weights_not_at_all(void **state)
{
    (void)state;
    EXPECT("GPU  PID SCORE     GROWTH BYTES COUNT OLDEST SITE\n"
           "  0 4121    99   1.2M/min 1400M    70 19h26m train.py:47 log_loss\n"
           "  0 4121     2 351.1K/min  400M     4  1h30m train.py:31 forward\n",
           "-p", "4121,4122");
    EXPECT("GPU  PID SCORE   GROWTH BYTES COUNT OLDEST PYTHON\n"
           "  0 4121    99 1.2M/min 1400M    70 19h26m train.py:47 log_loss\n",
           "--by", "python", "--top", "1");
}

static void test_verbose_shows_whole_stacks(void **state)
{
    (void)state;
    EXPECT("  0 4121    99 1.2M/min 1400M    70 19h26m train.py:47 log_loss\n"
           "      1400M in 70 by\n"
           "        /opt/gpulimit/lib/libgpulimit.so+0x100\n"
           "        /srv/nets/train.py:47 log_loss\n",
           "-v", "-n", "--top", "1");
}

static void test_where_nothing_grows_that_is_said(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "--growing", "-p", "4122");
    assert_string_equal(result.out, "");
    assert_string_equal(result.err, "gpulimit-stat: nothing grows: no call site has asked for 1M "
                                    "or more, in 3 pieces or more, since start-up and kept it\n");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_json_has_what_grows(void **state)
{
    struct tool_result result;
    json_t *frames;
    json_t *whole;
    json_t *leak = NULL;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "--growing", "--json", "--top", "1");
    assert_string_equal(result.err, "");
    schema_check("stat", result.out);
    whole = json_loads(result.out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(whole);
    for (size_t i = 0; i < 2; i++) {
        json_t *process = json_array_get(json_object_get(whole, "processes"), i);
        json_t *growing = json_object_get(process, "growing");
        bool is_leaking = json_integer_value(json_object_get(process, "pid")) == 4121;

        assert_true(json_is_array(growing));
        assert_int_equal(json_array_size(growing), is_leaking);
        leak = is_leaking ? json_array_get(growing, 0) : leak;
    }
    assert_int_equal(json_integer_value(json_object_get(leak, "gpu_index")), 0);
    assert_int_equal(json_integer_value(json_object_get(leak, "score")), 99);
    assert_in_range(json_integer_value(json_object_get(leak, "growth_bytes_per_minute")),
                    1199 * FIXTURE_MIB / 1000, 1200 * FIXTURE_MIB / 1000);
    assert_int_equal(json_integer_value(json_object_get(leak, "bytes")), 1400 * FIXTURE_MIB);
    assert_int_equal(json_integer_value(json_object_get(leak, "count")), 70);
    assert_int_equal(json_integer_value(json_object_get(leak, "allocations_total")), 70);
    assert_int_equal(json_integer_value(json_object_get(leak, "frees_total")), 0);
    frames = json_object_get(json_object_get(leak, "site"), "frames");
    assert_int_equal(json_array_size(frames), 2);
    json_decref(whole);
    tool_forget(&result);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    static const char *const lines[][5] = {{"--growing", NULL},
                                           {"allocs", "--growing", "--list", NULL},
                                           {"allocs", "--growing", "--by", "thread", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct tool_result result;

        TOOL_RUN(&result, STAT, lines[i][0], lines[i][1], lines[i][2], lines[i][3]);
        assert_string_equal(result.out, "");
        assert_non_null(strstr(result.err, "gpulimit-stat: --growing "));
        assert_int_equal(result.status, 2);
        tool_forget(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_leak_comes_first_and_weights_not_at_all),
        cmocka_unit_test(test_verbose_shows_whole_stacks),
        cmocka_unit_test(test_where_nothing_grows_that_is_said),
        cmocka_unit_test(test_json_has_what_grows),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
