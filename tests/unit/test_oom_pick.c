/* SPDX-License-Identifier: MIT
 *
 * shim/oom_pick.c: the first, the largest and the latest of many refusals have a report.
 */
#include "unit.h"

#include "oom_pick.h"

#define SECONDS(_count) ((uint64_t)(_count)*1000000000u)

static void test_the_first_is_picked_once(void **state)
{
    struct oom_pick pick = {0};
    (void)state;
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(5)), OOM_FIRST);
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(100)), OOM_LATEST);
    assert_int_equal(oom_pick_take(&pick, 50, SECONDS(200)), OOM_LATEST);
}

static void test_a_larger_one_is_the_largest_and_a_smaller_one_the_latest(void **state)
{
    struct oom_pick pick = {0};
    (void)state;
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(1)), OOM_FIRST);
    assert_int_equal(oom_pick_take(&pick, 200, SECONDS(1)), OOM_LARGEST);
    assert_int_equal(oom_pick_take(&pick, 150, SECONDS(1)), OOM_LATEST);
    assert_int_equal(oom_pick_take(&pick, 199, SECONDS(20)), OOM_LATEST);
    assert_int_equal(oom_pick_take(&pick, 201, SECONDS(20)), OOM_LARGEST);
}

static void test_of_200_in_a_loop_three_are_picked(void **state)
{
    struct oom_pick pick = {0};
    unsigned picked[OOM_LATEST + 1] = {0};
    (void)state;
    for (unsigned i = 0; i < 200; i++)
        picked[oom_pick_take(&pick, 100 + i, SECONDS(7) + i)]++;
    for (enum oom_number number = OOM_FIRST; number <= OOM_LATEST; number++)
        assert_int_equal(picked[number], 1);
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(17) - 1), OOM_NONE);
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(17) + 2), OOM_LATEST);
}

/* What came too early to be the largest on file is no measure for what comes later. */
static void test_the_largest_is_measured_by_what_was_written(void **state)
{
    struct oom_pick pick = {0};
    (void)state;
    assert_int_equal(oom_pick_take(&pick, 100, SECONDS(1)), OOM_FIRST);
    assert_int_equal(oom_pick_take(&pick, 200, SECONDS(2)), OOM_LARGEST);
    assert_int_equal(oom_pick_take(&pick, 900, SECONDS(3)), OOM_LATEST);
    assert_int_equal(oom_pick_take(&pick, 950, SECONDS(4)), OOM_NONE);
    assert_int_equal(oom_pick_take(&pick, 300, SECONDS(12)), OOM_LARGEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_picked_once),
        cmocka_unit_test(test_a_larger_one_is_the_largest_and_a_smaller_one_the_latest),
        cmocka_unit_test(test_of_200_in_a_loop_three_are_picked),
        cmocka_unit_test(test_the_largest_is_measured_by_what_was_written),
    };
    return cmocka_run_group_tests_name("oom_pick", tests, NULL, NULL);
}
