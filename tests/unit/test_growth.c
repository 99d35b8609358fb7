/* SPDX-License-Identifier: MIT
 *
 * What is said to grow, and how surely, of processes made by hand: a leak, a model's weights, a
 * cache, and what lies between them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "growth.h"
#include "growth_windows.h"

#define SECOND UINT64_C(1000000000)
#define MIB    (UINT64_C(1) << 20)

enum { ENTRIES = 400, SITES = 8, MARKS = 16 };

/* A process that began 80 seconds ago, so that a window is 10 seconds, on two devices. Site n is at
 * line n of a file that is none of a framework's. */
static struct gpulimit_ledger_entry test_entries[ENTRIES];
static struct gpulimit_ledger_tally test_tallies[SITES];
static struct gpulimit_ledger_mark test_marks[MARKS];
static struct gpulimit_site test_sites[SITES];
static char test_texts[2][GPULIMIT_TEXT_BYTES + 1] = {"train.py", "step"};
static char test_apis[1][GPULIMIT_API_BYTES + 1] = {"cuMemAlloc_v2"};
static struct gpulimit_ledger test_ledger;
static struct gpulimit_ledger *test_list[] = {&test_ledger};

static void test_make(void)
{
    static char path[] = "path";

    memset(test_entries, 0, sizeof(test_entries));
    memset(test_sites, 0, sizeof(test_sites));
    for (uint32_t i = 0; i < SITES; i++) {
        test_sites[i].python_count = 1;
        test_sites[i].frames[0] =
            (struct gpulimit_frame){GPULIMIT_FRAME_PYTHON, 1, UINT64_C(2) << 32 | (i + 1)};
    }
    test_ledger = (struct gpulimit_ledger){.path = path,
                                           .pid = 30,
                                           .created_time_ns = 1000 * SECOND,
                                           .created_mono_ns = 5 * SECOND,
                                           .apis = test_apis,
                                           .api_count = 1,
                                           .texts = test_texts,
                                           .text_count = 2,
                                           .sites = test_sites,
                                           .site_count = SITES,
                                           .entries = test_entries,
                                           .tallies = test_tallies,
                                           .marks = test_marks,
                                           .device_count = 2};
    test_ledger.devices[1].gpu_index = 1;
}

/* An allocation that lives, so many seconds after the process began. */
static void test_bear(uint32_t site, double seconds, uint64_t bytes)
{
    assert_true(test_ledger.entry_count < ENTRIES);
    test_entries[test_ledger.entry_count++] = (struct gpulimit_ledger_entry){
        .requested_bytes = bytes,
        .committed_bytes = bytes,
        .born_mono_ns = test_ledger.created_mono_ns + (uint64_t)(seconds * (double)SECOND),
        .site = site,
        .kind = GPULIMIT_KIND_LINEAR};
}

static void test_count(uint32_t site, uint64_t allocations, uint64_t frees)
{
    assert_true(test_ledger.tally_count < SITES);
    test_tallies[test_ledger.tally_count++] = (struct gpulimit_ledger_tally){
        .site = site, .allocations_total = allocations, .frees_total = frees};
}

static void test_mark(double seconds, uint32_t device)
{
    assert_true(test_ledger.mark_count < MARKS);
    test_marks[test_ledger.mark_count++] = (struct gpulimit_ledger_mark){
        .number = test_ledger.mark_count + 1,
        .device = device,
        .mono_ns = test_ledger.created_mono_ns + (uint64_t)(seconds * (double)SECOND)};
}

static struct view test_view;
static struct groups test_groups;
static struct growth test_growth;

static void test_judge(enum groups_key key, uint64_t top)
{
    const struct snapshot snapshot = {
        .ledgers = test_list, .ledger_count = 1, .time_ns = 1080 * SECOND};
    const struct view_filter filter = {.has_ended = true};
    const struct groups_filter by = {.key = key};

    view_open(&snapshot, &filter, &test_view);
    groups_open(&test_view, &by, &test_groups);
    growth_open(&test_view, &test_groups, top, &test_growth);
}

static void test_close(void)
{
    growth_close(&test_growth);
    groups_close(&test_groups);
    view_close(&test_view);
}

static uint32_t test_get_line(size_t row)
{
    return (uint32_t)test_growth.rows[row].group->example->site->frames[0].place;
}

/* Of each second's tensor at line 2, only the last five live; line 3 loses 1 MiB a second. */
static void test_a_leak_comes_first_and_weights_not_at_all(void **state)
{
    (void)state;
    test_make();
    for (int i = 0; i < 20; i++) {
        test_bear(1, 1, 100 * MIB);
    }
    test_count(1, 20, 0);
    for (int i = 75; i < 80; i++) {
        test_bear(2, i, 64 * MIB);
    }
    test_count(2, 80, 75);
    for (int i = 0; i < 80; i++) {
        test_bear(3, i, MIB);
    }
    test_count(3, 80, 0);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 2);
    assert_int_equal(test_get_line(0), 3);
    assert_int_equal(test_growth.rows[0].score, 99); /* 1 - 1 / 82 */
    assert_int_equal(test_growth.rows[0].growth_bytes, 70 * MIB);
    assert_int_equal(test_growth.rows[0].growth_count, 70);
    assert_int_equal(test_growth.rows[0].bytes_per_minute, 60 * MIB);
    assert_int_equal(test_growth.rows[0].allocations_total, 80);
    assert_int_equal(test_growth.rows[0].group->bytes, 80 * MIB);
    assert_int_equal(test_get_line(1), 2);
    assert_int_equal(test_growth.rows[1].score, 1); /* 1 / 7 of 1 - 76 / 82 */
    test_close();

    test_judge(GROUPS_BY_PYTHON, 1);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_get_line(0), 3);
    test_close();
}

/* A cache of 70 places whose contents live for all of the windows, and turn over 9 times. */
static void test_what_is_freed_in_the_end_scores_low(void **state)
{
    (void)state;
    test_make();
    for (int i = 0; i < 70; i++) {
        test_bear(1, 10 + i, MIB);
    }
    test_count(1, 700, 630);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].score, 10);
    assert_int_equal(test_growth.rows[0].frees_total, 630);
    test_close();
}

static void test_the_score_is_the_share_of_windows(void **state)
{
    (void)state;
    test_make();
    test_bear(1, 12, MIB); /* in 3 of 7 */
    test_bear(1, 13, MIB);
    test_bear(1, 45, MIB);
    test_bear(1, 79.9, MIB);
    test_count(1, 98, 0);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].score, 42); /* of 99% */
    test_close();
}

static void test_little_is_left_out(void **state)
{
    (void)state;
    test_make();
    test_bear(1, 20, 100 * MIB); /* too few */
    test_bear(1, 60, 100 * MIB);
    for (int i = 10; i < 80; i += 10) {
        test_bear(1, 1, 100 * MIB); /* start-up does not count */
        test_bear(2, i, MIB / 8);   /* too small */
        test_bear(3, i, MIB / 7 + 1);
    }
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_get_line(0), 3);
    test_close();
}

/* Three epochs of 2 seconds, long after the first eighth. Line 1 gets something in each; line 2 in
 * one alone, and much outside; the other device's marks are not ours. */
static void test_marks_are_better_windows(void **state)
{
    static const double marks[] = {2, 60, 62, 64, 66};

    (void)state;
    test_make();
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        test_mark(marks[i], 0);
        test_mark(marks[i] + 1, 1);
    }
    for (int i = 0; i < 3; i++) {
        test_bear(1, 60.5 + 2 * i, MIB);
        test_bear(2, 62 + 0.1 * i, MIB);
        test_bear(2, 67 + i, MIB);
        test_bear(2, 20 + 10 * i, MIB);
    }
    test_count(1, 98, 0);
    test_count(2, 98, 0);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 2);
    assert_int_equal(test_get_line(0), 1);
    assert_int_equal(test_growth.rows[0].score, 99);
    assert_int_equal(test_growth.rows[0].bytes_per_minute, 9 * MIB); /* 3 in the 20 s since */
    assert_int_equal(test_get_line(1), 2);
    assert_int_equal(test_growth.rows[1].score, 33);
    assert_int_equal(test_growth.rows[1].growth_count, 6);
    test_close();
}

static void test_two_marks_are_too_few(void **state)
{
    (void)state;
    test_make();
    test_mark(2, 0);
    test_mark(30, 0);
    test_mark(40, 0);
    for (int i = 10; i < 80; i += 10) {
        test_bear(1, i, MIB);
    }
    test_count(1, 98, 0);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].score, 99);
    test_close();
}

/* Sites 1 and 4 are the same line by two stacks; of the second nothing lives. */
/* A function that all allocate by: one caller leaks, another gives all back. */
static void test_a_leak_does_not_hide_behind_others_of_its_line(void **state)
{
    (void)state;
    test_make();
    test_sites[3] = test_sites[0];
    test_sites[3].native_count = 1;
    test_sites[3].frames[1] = test_sites[0].frames[0];
    test_sites[3].frames[0] = (struct gpulimit_frame){GPULIMIT_FRAME_NATIVE, 0, 7};
    for (int i = 10; i < 80; i += 10) {
        test_bear(1, i, MIB);
    }
    test_count(1, 7, 0);
    test_count(4, 93, 93);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].allocations_total, 100);
    assert_int_equal(test_growth.rows[0].frees_total, 93);
    assert_int_equal(test_growth.rows[0].score, 89);
    test_close();
    test_tallies[0].frees_total = 7; /* half of it comes back */
    test_tallies[0].allocations_total = 14;
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].score, 50);
    test_close();
}

static void test_allocations_without_a_site_grow_too(void **state)
{
    (void)state;
    test_make();
    for (int i = 10; i < 80; i += 10) {
        test_bear(i % 20 == 0 ? 0 : SITES + 1, i, MIB); /* or of one that there is not */
    }
    test_count(0, 98, 48);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].allocations_total, 98);
    assert_int_equal(test_growth.rows[0].score, 51);
    test_close();
}

/* An old ledger has none; a damaged one has more frees than allocations. */
static void test_tallies_may_be_missing_or_senseless(void **state)
{
    (void)state;
    test_make();
    for (int i = 10; i < 80; i += 10) {
        test_bear(1, i, MIB);
        test_bear(2, i, MIB);
    }
    test_count(2, UINT64_MAX, UINT64_MAX);
    test_count(2, 8, 9);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 2);
    assert_int_equal(test_get_line(0), 1);
    assert_int_equal(test_growth.rows[0].score, 89); /* 1 - 1 / 9 */
    assert_int_equal(test_growth.rows[0].allocations_total, 7);
    assert_true(test_growth.rows[1].score <= 100);
    assert_true(test_growth.rows[1].frees_total <= test_growth.rows[1].allocations_total);
    test_close();
}

static void test_one_device_is_not_the_other(void **state)
{
    (void)state;
    test_make();
    for (int i = 10; i < 80; i += 10) {
        test_bear(1, i, MIB);
        test_entries[test_ledger.entry_count - 1].device = 1;
    }
    test_count(1, 98, 98);
    test_count(1, 98, 0);
    test_tallies[1].device = 1;
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].group->device->gpu_index, 1);
    assert_int_equal(test_growth.rows[0].frees_total, 0);
    test_close();
}

/* It ended 40 seconds after its beginning, or nobody knows when. */
static void test_the_life_of_the_dead_has_ended(void **state)
{
    static const enum gpulimit_state states[] = {GPULIMIT_STATE_EXITED, GPULIMIT_STATE_STALE};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        test_make();
        test_ledger.state = states[i];
        test_ledger.ended_time_ns = states[i] == GPULIMIT_STATE_EXITED ? 1040 * SECOND : 0;
        for (int born = 5; born <= 40; born += 5) {
            test_bear(1, born, MIB);
        }
        test_count(1, 98, 0);
        test_judge(GROUPS_BY_SITE, 0);
        assert_int_equal(test_growth.count, 1);
        assert_int_equal(test_growth.rows[0].score, 99);
        test_close();
    }
}

/* At a prompt since the 40th second. */
static void test_who_rests_has_not_stopped_growing(void **state)
{
    static struct gpulimit_ledger_event events[2];

    (void)state;
    test_make();
    for (int born = 5; born <= 40; born += 5) {
        test_bear(1, born, MIB);
    }
    events[0].mono_ns = test_ledger.created_mono_ns + 20 * SECOND;
    events[1].mono_ns = test_ledger.created_mono_ns + 40 * SECOND;
    test_ledger.events = events;
    test_ledger.event_count = 2;
    test_count(1, 98, 0);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 1);
    assert_int_equal(test_growth.rows[0].score, 99);
    assert_int_equal(test_growth.rows[0].bytes_per_minute, (8 * MIB * 60 + 17) / 35);
    test_close();

    events[1].mono_ns = test_ledger.created_mono_ns + 75 * SECOND; /* it goes on, but not here */
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.rows[0].score, 57); /* in 4 of 7 */
    test_close();
}

static void test_a_life_of_no_length_has_no_growth(void **state)
{
    (void)state;
    test_make();
    test_ledger.created_time_ns = 2000 * SECOND; /* the clock was set back */
    for (int i = 0; i < 10; i++) {
        test_bear(1, i, MIB);
    }
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 0);
    test_close();

    test_make();
    test_ledger.created_mono_ns = UINT64_MAX - 5;
    test_bear(1, 0, MIB);
    test_judge(GROUPS_BY_SITE, 0);
    assert_int_equal(test_growth.count, 0);
    test_close();
}

static void test_windows_have_edges(void **state)
{
    struct growth_windows windows;
    uint64_t start = 5 * SECOND;

    (void)state;
    test_make();
    test_judge(GROUPS_BY_SITE, 0);
    growth_windows_open(&test_view, &test_ledger, &test_ledger.devices[0], &windows);
    assert_int_equal(windows.count, 7);
    assert_false(growth_windows_are_after_start(&windows, start + 10 * SECOND - 1));
    assert_true(growth_windows_find(&windows, start + 10 * SECOND - 1) == GROWTH_NO_WINDOW);
    assert_int_equal(growth_windows_find(&windows, start + 10 * SECOND), 0);
    assert_int_equal(growth_windows_find(&windows, start + 20 * SECOND - 1), 0);
    assert_int_equal(growth_windows_find(&windows, start + 20 * SECOND), 1);
    assert_int_equal(growth_windows_find(&windows, start + 70 * SECOND), 6);
    assert_int_equal(growth_windows_find(&windows, start + 81 * SECOND), 6);
    assert_int_equal(growth_windows_get_span(&windows), 70 * SECOND);
    growth_windows_close(&windows);
    test_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_leak_comes_first_and_weights_not_at_all),
        cmocka_unit_test(test_what_is_freed_in_the_end_scores_low),
        cmocka_unit_test(test_the_score_is_the_share_of_windows),
        cmocka_unit_test(test_little_is_left_out),
        cmocka_unit_test(test_marks_are_better_windows),
        cmocka_unit_test(test_two_marks_are_too_few),
        cmocka_unit_test(test_a_leak_does_not_hide_behind_others_of_its_line),
        cmocka_unit_test(test_allocations_without_a_site_grow_too),
        cmocka_unit_test(test_tallies_may_be_missing_or_senseless),
        cmocka_unit_test(test_one_device_is_not_the_other),
        cmocka_unit_test(test_the_life_of_the_dead_has_ended),
        cmocka_unit_test(test_who_rests_has_not_stopped_growing),
        cmocka_unit_test(test_a_life_of_no_length_has_no_growth),
        cmocka_unit_test(test_windows_have_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
