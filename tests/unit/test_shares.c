/* SPDX-License-Identifier: MIT
 *
 * shim/shares.c: arrays share blocks, as measured.
 */
#include "unit.h"

#include "shares.h"

static uint64_t total_of(unsigned count, uint64_t bytes)
{
    struct shares shares = {0};
    uint64_t total = 0, back = 0;
    for (unsigned i = 0; i < count; i++)
        total += shares_add(&shares, bytes);
    for (unsigned i = 0; i < count; i++)
        back += shares_remove(&shares, bytes);
    assert_int_equal(back, total);
    assert_int_equal(shares.bytes, 0);
    return total;
}

static void test_arrays_of_a_mebibyte_lie_two_in_a_block(void **state)
{
    (void)state;
    assert_int_equal(total_of(1, MIB(1)), MIB(2));
    assert_int_equal(total_of(2, MIB(1)), MIB(2));
    assert_int_equal(total_of(3, MIB(1)), MIB(4));
    assert_int_equal(total_of(4, MIB(1)), MIB(4));
    assert_int_equal(total_of(8, MIB(1)), MIB(8));
}

static void test_small_arrays_fill_blocks(void **state)
{
    (void)state;
    assert_int_equal(total_of(1, 1000), MIB(2));
    assert_int_equal(total_of(32, 65536), MIB(2));
    assert_int_equal(total_of(33, 65536), MIB(4));
    assert_int_equal(total_of(3, MIB(2) / 3), MIB(2));
    assert_int_equal(total_of(20, 700 * 1024), MIB(20));
    assert_int_equal(total_of(10, 1536 * 1024), MIB(20));
}

static void test_large_arrays_are_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(total_of(1, MIB(2)), MIB(2));
    assert_int_equal(total_of(1, 16384000), MIB(16));
    assert_int_equal(total_of(2, 3211264), MIB(8));
}

static void test_one_more_fits_while_a_block_has_room(void **state)
{
    struct shares shares = {0};
    (void)state;
    assert_false(shares_fit(&shares, 1000));
    shares_add(&shares, MIB(1));
    assert_true(shares_fit(&shares, MIB(1)));
    shares_add(&shares, MIB(1));
    assert_false(shares_fit(&shares, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_of_a_mebibyte_lie_two_in_a_block),
        cmocka_unit_test(test_small_arrays_fill_blocks),
        cmocka_unit_test(test_large_arrays_are_rounded_up),
        cmocka_unit_test(test_one_more_fits_while_a_block_has_room),
    };
    return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
