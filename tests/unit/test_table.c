/* SPDX-License-Identifier: MIT
 *
 * shim/table.c, against a plain array that remembers the same pairs.
 */
#include "unit.h"

#include "table.h"

#include <stdlib.h>

static void test_empty_table_finds_nothing(void **state)
{
    struct table table = {0};
    (void)state;
    assert_null(table_find(&table, 7));
    assert_false(table_remove(&table, 7));
}

static void test_value_of_a_key_is_replaced(void **state)
{
    struct table table = {0};
    (void)state;
    assert_true(table_set(&table, 7, 1));
    assert_true(table_set(&table, 7, 2));
    assert_int_equal(table.count, 1);
    assert_int_equal(*table_find(&table, 7), 2);
    table_clear(&table);
}

static void test_random_operations_agree_with_an_array(void **state)
{
    enum { KEYS = 4096, STEPS = 400000 };
    static uint64_t values[KEYS]; /* 0: absent */
    struct table table = {0};
    size_t count = 0;
    (void)state;
    srandom(20);
    for (unsigned step = 1; step <= STEPS; step++) {
        size_t i = (size_t)random() % KEYS;
        uint64_t key = (i + 1) << 21; /* as block addresses are: all in the same low bits */
        if (random() % 2) {
            assert_true(table_set(&table, key, step));
            count += values[i] == 0;
            values[i] = step;
        } else {
            assert_int_equal(table_remove(&table, key), values[i] != 0);
            count -= values[i] != 0;
            values[i] = 0;
        }
        assert_int_equal(table.count, count);
    }
    for (size_t i = 0; i < KEYS; i++) {
        const uint64_t *found = table_find(&table, (i + 1) << 21);
        assert_int_equal(found ? *found : 0, values[i]);
    }
    table_clear(&table);
}

static bool count_pair(uint64_t key, uint64_t value, void *argument)
{
    assert_int_equal(value, key * 2);
    return ++*(unsigned *)argument < 10;
}

static void test_each_visits_until_told_to_stop(void **state)
{
    struct table table = {0};
    unsigned visits = 0;
    (void)state;
    for (uint64_t key = 1; key <= 100; key++)
        assert_true(table_set(&table, key, key * 2));
    table_each(&table, count_pair, &visits);
    assert_int_equal(visits, 10);
    table_clear(&table);
}

static void test_runs_stay_short_after_many_removals(void **state)
{
    struct table table = {0};
    (void)state;
    /* Tombstones would fill the table here, and it would grow or search for ever. */
    for (uint64_t key = 1; key <= 1000000; key++) {
        assert_true(table_set(&table, key, key));
        assert_true(table_remove(&table, key));
    }
    assert_int_equal(table.capacity, 1024);
    table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_table_finds_nothing),
        cmocka_unit_test(test_value_of_a_key_is_replaced),
        cmocka_unit_test(test_random_operations_agree_with_an_array),
        cmocka_unit_test(test_each_visits_until_told_to_stop),
        cmocka_unit_test(test_runs_stay_short_after_many_removals),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
