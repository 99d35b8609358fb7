/* SPDX-License-Identifier: MIT
 *
 * shim/pace.c: the first at once, later ones together, at most once in 10 s.
 */
#include "unit.h"

#include "pace.h"

#define SECOND UINT64_C(1000000000)
#define NOON   UINT64_C(43200)

/* One more, `second` seconds after the machine has started, at noon. */
static bool take_at(struct pace *pace, uint64_t bytes, uint64_t second, struct pace_turn *turn)
{
    return pace_take(pace, bytes, second * SECOND, NOON + second, turn);
}

static void test_the_first_is_told_at_once(void **state)
{
    struct pace pace = {0};
    struct pace_turn turn;
    (void)state;
    assert_true(take_at(&pace, MIB(512), 0, &turn));
    assert_true(turn.is_first);
    assert_int_equal(turn.count, 1);
    assert_int_equal(turn.largest_bytes, MIB(512));
}

static void test_later_ones_are_told_together_with_the_largest_of_them(void **state)
{
    struct pace pace = {0};
    struct pace_turn turn;
    (void)state;
    assert_true(take_at(&pace, MIB(900), 5, &turn));
    assert_false(take_at(&pace, MIB(100), 6, &turn));
    assert_false(take_at(&pace, MIB(300), 14, &turn));
    assert_true(take_at(&pace, MIB(200), 15, &turn));
    assert_false(turn.is_first);
    assert_int_equal(turn.count, 3);
    assert_int_equal(turn.largest_bytes, MIB(300)); /* the 900 have been told of */
    assert_int_equal(turn.since_time_s, NOON + 5);
    assert_true(take_at(&pace, MIB(1), 1000, &turn));
    assert_int_equal(turn.count, 1);
    assert_int_equal(turn.largest_bytes, MIB(1));
    assert_int_equal(turn.since_time_s, NOON + 15);
}

static void test_however_many_come_no_more_than_one_in_ten_seconds_is_told(void **state)
{
    struct pace pace = {0};
    struct pace_turn turn;
    uint64_t told = 0, counted = 0;
    (void)state;
    for (uint64_t i = 0; i <= 2000; i++) { /* 100 s, 20 a second */
        if (pace_take(&pace, 1, i * SECOND / 20, NOON + i / 20, &turn)) {
            told++;
            counted += turn.count;
        }
    }
    assert_int_equal(told, 11);
    assert_int_equal(counted, 2001); /* and none is lost */
}

static void test_a_wall_clock_that_is_set_back_changes_nothing(void **state)
{
    struct pace pace = {0};
    struct pace_turn turn;
    (void)state;
    assert_true(pace_take(&pace, 1, 5 * SECOND, NOON, &turn));
    assert_false(pace_take(&pace, 1, 6 * SECOND, NOON + 3600, &turn));
    assert_true(pace_take(&pace, 1, 15 * SECOND, NOON - 3600, &turn));
}

static void test_a_thread_that_read_its_clock_before_the_one_that_told_does_not_tell(void **state)
{
    struct pace pace = {0};
    struct pace_turn turn;
    (void)state;
    assert_true(take_at(&pace, MIB(1), 5, &turn));
    assert_false(take_at(&pace, MIB(1), 4, &turn));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_told_at_once),
        cmocka_unit_test(test_later_ones_are_told_together_with_the_largest_of_them),
        cmocka_unit_test(test_however_many_come_no_more_than_one_in_ten_seconds_is_told),
        cmocka_unit_test(test_a_wall_clock_that_is_set_back_changes_nothing),
        cmocka_unit_test(test_a_thread_that_read_its_clock_before_the_one_that_told_does_not_tell),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
