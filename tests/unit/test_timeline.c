/* SPDX-License-Identifier: MIT
 *
 * shim/timeline.c: nothing high or low is lost, however long it gets.
 */
#include "unit.h"

#include "timeline.h"

#define START UINT64_C(5000000000)
#define STEP  ((uint64_t)TIMELINE_FIRST_NS)

static struct timeline timeline;

static int clear(void **state)
{
    (void)state;
    timeline = (struct timeline){0};
    return 0;
}

static uint32_t note(uint64_t step, uint64_t bytes)
{
    return timeline_note(&timeline, START + step * STEP, bytes, 1000, 0);
}

static void an_interval_has_its_highest_and_lowest(void **state)
{
    (void)state;
    assert_int_equal(note(0, 100), 0);
    timeline_note(&timeline, START + 1, 300, 1000, 2);
    timeline_note(&timeline, START + 2, 50, 900, 3);
    assert_int_equal(timeline.count, 1);
    assert_int_equal(timeline.samples[0].highest_bytes, 300);
    assert_int_equal(timeline.samples[0].lowest_bytes, 50);
    assert_int_equal(timeline.samples[0].limit_bytes, 900);
    assert_int_equal(timeline.samples[0].denials, 3);
}

static void what_does_not_change_needs_no_writing(void **state)
{
    (void)state;
    note(0, 100);
    assert_int_equal(note(0, 100), timeline.count);
    assert_int_equal(note(0, 101), 0);
    assert_int_equal(note(0, 100), timeline.count);
}

static void quiet_intervals_are_as_the_last_figure_left_them(void **state)
{
    (void)state;
    note(0, 100);
    assert_int_equal(note(3, 500), 1);
    assert_int_equal(timeline.count, 4);
    assert_int_equal(timeline.samples[2].highest_bytes, 100);
    assert_int_equal(timeline.samples[2].lowest_bytes, 100);
    assert_int_equal(timeline.samples[2].limit_bytes, 1000);
    assert_int_equal(timeline.samples[3].highest_bytes, 500);
    assert_int_equal(timeline.samples[3].lowest_bytes, 100);
}

static void a_full_line_is_halved_and_keeps_what_was_high_and_low(void **state)
{
    (void)state;
    for (uint32_t step = 0; step < GPULIMIT_TIMELINE_SAMPLES; step++)
        timeline_note(&timeline, START + step * STEP, step == 100 ? 7000 : 500, 1000, step);
    assert_int_equal(timeline.count, GPULIMIT_TIMELINE_SAMPLES);
    assert_int_equal(note(GPULIMIT_TIMELINE_SAMPLES, 500), 0);
    assert_int_equal(timeline.interval_ns, 2 * STEP);
    assert_int_equal(timeline.count, GPULIMIT_TIMELINE_SAMPLES / 2 + 1);
    assert_int_equal(timeline.samples[50].highest_bytes, 7000);
    assert_int_equal(timeline.samples[50].lowest_bytes, 500);
    assert_int_equal(timeline.samples[50].denials, 2);
    assert_int_equal(timeline.samples[51].highest_bytes, 500);
}

static void a_year_takes_the_same_room(void **state)
{
    uint64_t year = UINT64_C(365) * 24 * 3600 * 1000000000;
    (void)state;
    note(0, 100);
    timeline_note(&timeline, START + year, 200, 1000, 5);
    assert_true(timeline.count <= GPULIMIT_TIMELINE_SAMPLES);
    assert_true(timeline.count > GPULIMIT_TIMELINE_SAMPLES / 4);
    assert_int_equal(timeline.samples[timeline.count - 1].highest_bytes, 200);
    assert_int_equal(timeline.samples[timeline.count - 1].denials, 5);
    assert_int_equal(timeline.samples[1].highest_bytes, 100);
}

static void a_clock_that_goes_back_harms_nothing(void **state)
{
    (void)state;
    note(10, 100);
    note(12, 200);
    assert_int_equal(note(0, 300), 2);
    assert_int_equal(timeline.count, 3);
    assert_int_equal(timeline.samples[2].highest_bytes, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_interval_has_its_highest_and_lowest, clear),
        cmocka_unit_test_setup(what_does_not_change_needs_no_writing, clear),
        cmocka_unit_test_setup(quiet_intervals_are_as_the_last_figure_left_them, clear),
        cmocka_unit_test_setup(a_full_line_is_halved_and_keeps_what_was_high_and_low, clear),
        cmocka_unit_test_setup(a_year_takes_the_same_room, clear),
        cmocka_unit_test_setup(a_clock_that_goes_back_harms_nothing, clear),
    };
    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
