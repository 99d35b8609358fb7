/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat's tables of allocations and of hooks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tool_run.h"

#define STAT "gpulimit-stat"

/* The ages are half a minute past the one that is shown: a slow machine must not change it.
 * Two processes: 4121 with three linear and two async allocations, 4122 that counts requests, with
 * one. */
static int test_set_up(void **state)
{
    static const struct {
        enum gpulimit_kind kind;
        uint32_t api, size_mib, age_seconds, thread_id;
    } allocations[] = {
        {GPULIMIT_KIND_LINEAR, 0, 20, 7230, 4121}, {GPULIMIT_KIND_LINEAR, 0, 20, 3630, 4121},
        {GPULIMIT_KIND_LINEAR, 0, 3, 3630, 4125},  {GPULIMIT_KIND_ASYNC, 1, 10, 5430, 4125},
        {GPULIMIT_KIND_ASYNC, 1, 12, 5490, 4125},
    };
    struct gpulimit_entry *entries;
    struct fixture fixture;

    folder_open(state);
    fixture_open(&fixture, 9000);
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, 512);
    for (uint32_t i = 0; i < 5; i++) {
        fixture_fill_entry(&fixture, &entries[i],
                           GPULIMIT_PLACE(allocations[i].kind, 0, allocations[i].api),
                           allocations[i].size_mib, allocations[i].age_seconds);
        entries[i].thread_id = allocations[i].thread_id;
        entries[i].address = 0x7f0000000000 + i;
    }
    fixture.devices[0].by_kind[GPULIMIT_KIND_ASYNC].bytes = 32 * FIXTURE_MIB; /* a pool's reserve */
    fixture.devices[0].overhead_bytes = 24 * FIXTURE_MIB;
    folder_add(&fixture, "1", true);

    fixture_open(&fixture, 9000);
    fixture.header->pid = 4122;
    fixture.header->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    fixture_add_device(&fixture, 1);
    entries = fixture_add_entries(&fixture, 512);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(GPULIMIT_KIND_VMM, 1, 0), 1, 3930);
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
    test_expect((const char *const[]){STAT, "allocs", __VA_ARGS__, NULL}, _golden)

static void test_groups_are_by_api_and_kind(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST KIND     API\n"
           "  0 4121   44M     3     20M  2h00m linear   cuMemAlloc_v2\n"
           "  0 4121   24M     -       -      - overhead (context, code, streams)\n"
           "  0 4121   22M     2     12M  1h31m async    cuMemAllocAsync\n"
           "  0 4121   10M     -       -      - async    (idle in pools)\n"
           "  1 4122    1M     1      1M  1h05m vmm      cuMemAlloc_v2\n",
           "--by", "api");
}

static void test_groups_by_python_add_up_to_what_is_charged(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST PYTHON\n"
           "  0 4121   44M     3     20M  2h00m (no Python, cuMemAlloc_v2)\n"
           "  0 4121   24M     -       -      - (overhead: context, code, streams)\n"
           "  0 4121   22M     2     12M  1h31m (no Python, cuMemAllocAsync)\n"
           "  0 4121   10M     -       -      - (idle in pools)\n",
           "--by", "python", "-p", "4121");
}

static void test_groups_are_by_other_keys_too(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST KIND\n"
           "  0 4121   44M     3     20M  2h00m linear\n"
           "  0 4121   22M     2     12M  1h31m async\n",
           "--by", "kind", "-p", "4121");
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST THREAD\n"
           "  0 4121   40M     2     20M  2h00m   4121\n"
           "  0 4121   26M     3     12M  1h31m   4125\n",
           "--by", "thread", "-p", "4121");
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST SIZE\n"
           "  0 4121   40M     2     20M  2h00m  20M\n"
           "  0 4121   12M     1     12M  1h31m  12M\n",
           "--by", "size", "-p", "4121", "--top", "2");
}

static void test_small_ones_can_be_left_out(void **state)
{
    (void)state;
    EXPECT("  0 4121 41943040     2 20971520  2h00m linear cuMemAlloc_v2\n", "--min-size", "20M",
           "-n", "-b");
}

static void test_list_has_a_line_for_each_allocation(void **state)
{
    (void)state;
    EXPECT("GPU  PID ADDRESS        SIZE COMMITTED KIND   API             THREAD   AGE\n"
           "  0 4121 0x7f0000000000  20M       20M linear cuMemAlloc_v2     4121 2h00m\n"
           "  0 4121 0x7f0000000001  20M       20M linear cuMemAlloc_v2     4121 1h00m\n"
           "  0 4121 0x7f0000000004  12M       12M async  cuMemAllocAsync   4125 1h31m\n"
           "  0 4121 0x7f0000000003  10M       10M async  cuMemAllocAsync   4125 1h30m\n"
           "  0 4121 0x7f0000000002   3M        4M linear cuMemAlloc_v2     4125 1h00m\n",
           "-l", "-p", "4121");
}

static void test_young_ones_can_be_left_out(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST KIND   API\n"
           "  0 4121   22M     2     12M  1h31m async  cuMemAllocAsync\n"
           "  0 4121   20M     1     20M  2h00m linear cuMemAlloc_v2\n",
           "--older-than", "90m");
    EXPECT("  0 4121   20M     1     20M  2h00m linear cuMemAlloc_v2\n", "--older-than", "7200",
           "-n");
    EXPECT("", "--older-than", "1d");
}

static void test_nothing_to_list_prints_nothing(void **state)
{
    (void)state;
    EXPECT("", "--min-size", "1T");
}

static void test_what_only_allocs_knows_is_passed_over_by_no_other_verb(void **state)
{
    static const struct {
        const char *words[4];
        const char *said;
    } cases[] = {
        {{"--top", "3"}, "gpulimit-stat: --top goes with allocs: gpulimit-stat allocs --top N\n"},
        {{"-l"}, "gpulimit-stat: --list goes with allocs: gpulimit-stat allocs --list\n"},
        {{"--json", "--by", "tag"}, "--by goes with allocs"},
        {{"doctor", "-v"}, "--verbose goes with allocs"},
        {{"--growing"}, "--growing goes with allocs"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tool_result result;

        TOOL_RUN(&result, STAT, cases[i].words[0], cases[i].words[1], cases[i].words[2]);
        assert_non_null(strstr(result.err, cases[i].said));
        assert_string_equal(result.out, "");
        assert_int_equal(result.status, 2);
        tool_forget(&result);
    }
}

static void test_unlisted_allocations_are_told(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4123;
    fixture.header->entries_unlisted = 17;
    fixture_add_device(&fixture, 0);
    folder_add(&fixture, "3", true);
    TOOL_RUN(&result, STAT, "allocs", "-p", "4123");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "no room for 17 live allocations of process 4123"));
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "-p", "4123"); /* whose counters do not miss them */
    assert_string_equal(result.err, "");
    tool_forget(&result);
    TOOL_RUN(&result, STAT, "allocs", "--json", "-p", "4123");
    assert_non_null(strstr(result.out, "\"code\": \"unlisted\""));
    tool_forget(&result);
}

/* Makes every run of blanks one: the widths of columns are those of the longest rows. */
static void test_narrow(char *text)
{
    char *end = text;

    for (; *text != '\0'; text++) {
        if (*text != ' ' || text[1] != ' ') {
            *end++ = *text;
        }
    }
    *end = '\0';
}

static void test_hooks_are_listed_with_room_role_and_text(void **state)
{
    static const char head[] = "SYMBOL ROOM ROLE TEXT\n";
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "hooks");
    assert_int_equal(result.status, 0);
    test_narrow(result.out);
    assert_int_equal(strncmp(result.out, head, strlen(head)), 0);
    assert_non_null(strstr(result.out, "\ncuMemCreate vmm ALLOCATES charge the size "));
    assert_non_null(strstr(result.out, "\ncudaMalloc runtime NAMES name the allocation"));
    tool_forget(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_by_api_and_kind),
        cmocka_unit_test(test_groups_by_python_add_up_to_what_is_charged),
        cmocka_unit_test(test_groups_are_by_other_keys_too),
        cmocka_unit_test(test_small_ones_can_be_left_out),
        cmocka_unit_test(test_list_has_a_line_for_each_allocation),
        cmocka_unit_test(test_young_ones_can_be_left_out),
        cmocka_unit_test(test_nothing_to_list_prints_nothing),
        cmocka_unit_test(test_what_only_allocs_knows_is_passed_over_by_no_other_verb),
        cmocka_unit_test(test_unlisted_allocations_are_told),
        cmocka_unit_test(test_hooks_are_listed_with_room_role_and_text),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
