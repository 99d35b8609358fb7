/* SPDX-License-Identifier: MIT
 *
 * shim/tally.c: what a call site holds now, and what it held at the peak, whatever came after.
 */
#include "unit.h"

#include "tally.h"

static struct tallies tallies;

static int clear(void **state)
{
    (void)state;
    tally_clear(&tallies);
    return 0;
}

static uint64_t peak_bytes(uint32_t number, uint64_t epoch)
{
    return tally_peak_bytes(&tallies.list[number], epoch);
}

static uint64_t peak_count(uint32_t number, uint64_t epoch)
{
    return tally_peak_count(&tallies.list[number], epoch);
}

static void a_place_has_one_number(void **state)
{
    (void)state;
    uint32_t first = tally_find(&tallies, 0, 7);
    assert_int_not_equal(first, TALLY_NONE);
    assert_int_equal(tally_find(&tallies, 0, 7), first);
    assert_int_not_equal(tally_find(&tallies, 1, 7), first);
    assert_int_not_equal(tally_find(&tallies, 0, 0), first);
    assert_int_equal(tallies.count, 3);
}

static void what_is_live_is_the_difference(void **state)
{
    (void)state;
    uint32_t number = tally_find(&tallies, 0, 1);
    tally_add(&tallies, number, 100, 0);
    tally_add(&tallies, number, 50, 0);
    tally_remove(&tallies, number, 100, 0);
    assert_int_equal(tallies.list[number].bytes, 50);
    assert_int_equal(tallies.list[number].allocations_total, 2);
    assert_int_equal(tallies.list[number].frees_total, 1);
}

static void what_does_not_change_after_the_peak_holds_what_it_held_then(void **state)
{
    (void)state;
    uint32_t number = tally_find(&tallies, 0, 1);
    tally_add(&tallies, number, 100, 0);
    assert_int_equal(peak_bytes(number, 1), 100);
    assert_int_equal(peak_count(number, 1), 1);
}

static void what_changes_after_the_peak_is_remembered(void **state)
{
    (void)state;
    uint32_t freed = tally_find(&tallies, 0, 1), grown = tally_find(&tallies, 0, 2);
    tally_add(&tallies, freed, 100, 0);
    tally_add(&tallies, grown, 10, 1);
    tally_remove(&tallies, freed, 100, 2);
    tally_add(&tallies, grown, 5, 2);
    tally_add(&tallies, grown, 5, 2);
    assert_int_equal(peak_bytes(freed, 2), 100);
    assert_int_equal(peak_count(freed, 2), 1);
    assert_int_equal(peak_bytes(grown, 2), 10);
    assert_int_equal(peak_count(grown, 2), 1);
}

static void a_later_peak_takes_the_place_of_an_earlier_one(void **state)
{
    (void)state;
    uint32_t number = tally_find(&tallies, 0, 1);
    tally_add(&tallies, number, 100, 0);
    tally_remove(&tallies, number, 100, 1);
    tally_add(&tallies, number, 300, 1);
    assert_int_equal(peak_bytes(number, 2), 300);
    tally_remove(&tallies, number, 300, 2);
    assert_int_equal(peak_bytes(number, 2), 300);
}

static void there_are_no_more_than_so_many(void **state)
{
    (void)state;
    for (uint32_t site = 0; site < TALLY_MOST; site++)
        assert_int_not_equal(tally_find(&tallies, 0, site), TALLY_NONE);
    assert_int_equal(tally_find(&tallies, 0, TALLY_MOST), TALLY_NONE);
    tally_add(&tallies, TALLY_NONE, 1, 0); /* is nobody's */
    tally_remove(&tallies, TALLY_NONE, 1, 0);
    assert_int_equal(tally_find(&tallies, 0, 17), 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_place_has_one_number, clear),
        cmocka_unit_test_teardown(what_is_live_is_the_difference, clear),
        cmocka_unit_test_teardown(what_does_not_change_after_the_peak_holds_what_it_held_then,
                                  clear),
        cmocka_unit_test_teardown(what_changes_after_the_peak_is_remembered, clear),
        cmocka_unit_test_teardown(a_later_peak_takes_the_place_of_an_earlier_one, clear),
        cmocka_unit_test_teardown(there_are_no_more_than_so_many, clear),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
