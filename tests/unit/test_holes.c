/* SPDX-License-Identifier: MIT
 *
 * shim/holes.c: room inside a pool, against a plain map of what is free.
 */
#include "unit.h"

#include "holes.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x302000000)

static void test_neighbours_make_one_hole(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_open(&holes, BASE, MIB(32));
    holes_open(&holes, BASE + MIB(64), MIB(32));
    assert_false(holes_fit(&holes, MIB(33)));
    holes_open(&holes, BASE + MIB(32), MIB(32));
    assert_int_equal(holes.count, 1);
    assert_true(holes_fit(&holes, MIB(96)));
    assert_false(holes_fit(&holes, MIB(96) + 1));
}

static void test_an_allocation_splits_the_hole_that_it_lies_in(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_open(&holes, BASE, MIB(10));
    holes_fill(&holes, BASE + MIB(4), MIB(1));
    assert_true(holes_fit(&holes, MIB(5)));
    assert_false(holes_fit(&holes, MIB(5) + 1));
    holes_fill(&holes, BASE + MIB(5), MIB(5));
    assert_true(holes_fit(&holes, MIB(4)));
    holes_forget(&holes);
    assert_false(holes_fit(&holes, 1));
}

static void test_sizes_count_in_grains_of_512(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_open(&holes, BASE, 1);
    holes_open(&holes, BASE + 512, 1);
    assert_true(holes_fit(&holes, 1024));
    holes_fill(&holes, BASE, 700);
    assert_int_equal(holes.count, 0);
}

static void test_the_largest_are_remembered(void **state)
{
    struct holes holes = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        holes_open(&holes, BASE + i * MIB(4), (i * 37 % 1000 + 1) * 512);
    assert_int_equal(holes.count, HOLES_MAX);
    assert_true(holes_fit(&holes, 1000 * 512));
}

static void test_random_operations_never_claim_room_that_is_not_there(void **state)
{
    enum { GRAINS = 4096 };
    static bool is_free[GRAINS];
    struct holes holes = {0};
    (void)state;
    srandom(22);
    for (unsigned step = 0; step < 20000; step++) {
        size_t at = (size_t)random() % GRAINS, grains = 1 + (size_t)random() % 40;
        bool opens = random() % 2;
        if (at + grains > GRAINS)
            continue;
        if (opens)
            holes_open(&holes, BASE + at * 512, grains * 512);
        else
            holes_fill(&holes, BASE + at * 512, grains * 512);
        memset(&is_free[at], opens, grains);
        size_t run = 0, longest = 0;
        for (size_t i = 0; i < GRAINS; i++) {
            run = is_free[i] ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        assert_false(holes_fit(&holes, longest * 512 + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_make_one_hole),
        cmocka_unit_test(test_an_allocation_splits_the_hole_that_it_lies_in),
        cmocka_unit_test(test_sizes_count_in_grains_of_512),
        cmocka_unit_test(test_the_largest_are_remembered),
        cmocka_unit_test(test_random_operations_never_claim_room_that_is_not_there),
    };
    return cmocka_run_group_tests_name("holes", tests, NULL, NULL);
}
