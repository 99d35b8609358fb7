/* SPDX-License-Identifier: MIT
 *
 * shim/budget.c: it never lets more through than there is, whatever the size and however many
 * threads ask.
 */
#include "unit.h"

#include "budget.h"

#include "gpulimit/region.h"

#include <pthread.h>
#include <stdatomic.h>

static int reset(void **state)
{
    (void)state;
    budget_reset();
    budget_set_limit(0, MIB(1024));
    budget_set_limit(1, 0);
    return 0;
}

static void test_the_limit_itself_fits_and_a_byte_more_does_not(void **state)
{
    (void)state;
    assert_false(budget_take(0, MIB(1024) + 1));
    assert_true(budget_take(0, MIB(1024)));
    assert_false(budget_take(0, 1));
    assert_int_equal(budget_used(0), MIB(1024));
}

static void test_sizes_near_2_to_the_64_do_not_wrap(void **state)
{
    (void)state;
    assert_true(budget_take(0, 4096));
    assert_false(budget_take(0, UINT64_MAX));
    assert_false(budget_take(0, UINT64_MAX - 4096));
    assert_false(budget_take(0, UINT64_MAX - 4095));
    assert_int_equal(budget_used(0), 4096);
}

static void test_nothing_fits_when_more_is_used_than_a_lowered_limit(void **state)
{
    (void)state;
    assert_true(budget_take(0, MIB(512)));
    budget_set_limit(0, MIB(256));
    assert_false(budget_take(0, 1));
    assert_false(budget_take(0, 0));
    budget_give(0, MIB(512));
    assert_true(budget_take(0, MIB(256)));
}

static void test_a_device_whose_limit_nobody_set_gives_nothing(void **state)
{
    (void)state;
    assert_false(budget_take(BUDGET_DEVICES - 1, 1));
}

static void test_without_a_limit_everything_is_let_through(void **state)
{
    (void)state;
    budget_set_limit(0, GPULIMIT_NO_LIMIT);
    assert_true(budget_take(0, UINT64_MAX));
    assert_true(budget_take(0, UINT64_MAX));
    budget_give(0, UINT64_MAX);
    budget_give(0, UINT64_MAX);
    assert_int_equal(budget_used(0), 0);
}

static void test_devices_do_not_share(void **state)
{
    (void)state;
    assert_true(budget_take(0, MIB(1024)));
    assert_int_equal(budget_used(1), 0);
    assert_false(budget_take(1, 1));
}

static void test_adjusting_passes_the_limit(void **state)
{
    (void)state;
    budget_adjust(0, (int64_t)MIB(2048));
    assert_int_equal(budget_used(0), MIB(2048));
    budget_adjust(0, -(int64_t)MIB(2048));
    assert_int_equal(budget_used(0), 0);
}

static atomic_uint successes;

static void *take_once(void *argument)
{
    (void)argument;
    if (budget_take(0, MIB(100)))
        atomic_fetch_add(&successes, 1);
    return NULL;
}

static void test_of_8_threads_that_take_100_mib_of_250_exactly_2_succeed(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        pthread_t threads[8];
        budget_reset();
        budget_set_limit(0, MIB(250));
        atomic_store(&successes, 0);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_once, NULL), 0);
        for (unsigned i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&successes), 2);
        assert_int_equal(budget_used(0), MIB(200));
    }
}

static void *take_and_give(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < 20000; i++) {
        if (budget_take(0, MIB(100))) {
            assert_true(budget_used(0) <= MIB(250));
            budget_give(0, MIB(100));
        }
    }
    return NULL;
}

static void test_the_counter_ends_at_zero_after_a_storm(void **state)
{
    pthread_t threads[8];
    (void)state;
    budget_set_limit(0, MIB(250));
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(budget_used(0), 0);
}

static void test_grace_is_for_one_at_a_time(void **state)
{
    (void)state;
    assert_true(budget_take_grace(0));
    assert_false(budget_take_grace(0));
    assert_true(budget_take_grace(1));
    budget_give_grace(0);
    assert_true(budget_take_grace(0));
}

static void test_a_guess_lasts_until_the_grace_is_given_back(void **state)
{
    uint64_t before = budget_guesses(0);
    (void)state;
    assert_true(budget_take_grace(0));
    assert_int_equal(budget_guesses(0), before); /* the grace alone is none */
    budget_guess(0);
    assert_int_equal(budget_guesses(0) % 2, 1);
    budget_give_grace(0);
    assert_int_equal(budget_guesses(0), before + 2);
    assert_true(budget_take_grace(0));
    budget_give_grace(0);
    assert_int_equal(budget_guesses(0), before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_limit_itself_fits_and_a_byte_more_does_not, reset),
        cmocka_unit_test_setup(test_sizes_near_2_to_the_64_do_not_wrap, reset),
        cmocka_unit_test_setup(test_nothing_fits_when_more_is_used_than_a_lowered_limit, reset),
        cmocka_unit_test_setup(test_a_device_whose_limit_nobody_set_gives_nothing, reset),
        cmocka_unit_test_setup(test_without_a_limit_everything_is_let_through, reset),
        cmocka_unit_test_setup(test_devices_do_not_share, reset),
        cmocka_unit_test_setup(test_adjusting_passes_the_limit, reset),
        cmocka_unit_test_setup(test_of_8_threads_that_take_100_mib_of_250_exactly_2_succeed, reset),
        cmocka_unit_test_setup(test_the_counter_ends_at_zero_after_a_storm, reset),
        cmocka_unit_test_setup(test_grace_is_for_one_at_a_time, reset),
        cmocka_unit_test_setup(test_a_guess_lasts_until_the_grace_is_given_back, reset),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
