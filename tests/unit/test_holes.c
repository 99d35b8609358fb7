/* SPDX-License-Identifier: MIT
 *
 * shim/holes.c: room inside a pool, against a plain map of what is free.
 */
#include "unit.h"

#include "holes.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x302000000)

/* Freed, with nothing happening meanwhile. */
static void open_hole(struct holes *holes, uint64_t address, uint64_t bytes)
{
    holes_leave(holes, address, bytes);
    holes_open(holes, address, bytes);
}

static void test_what_is_leaving_is_no_hole_yet_and_can_be_filled(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_leave(&holes, BASE, MIB(32));
    assert_false(holes_fit(&holes, 1));
    /* The driver has freed it and handed part of it out, before we hear of the free. */
    holes_fill(&holes, BASE, MIB(8), 0, true);
    holes_open(&holes, BASE, MIB(32));
    assert_true(holes_fit(&holes, MIB(24)));
    assert_false(holes_fit(&holes, MIB(24) + 1));
}

static void test_what_stays_is_no_hole(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_leave(&holes, BASE, MIB(32));
    holes_stay(&holes, BASE, MIB(32));
    holes_open(&holes, BASE, MIB(32));
    assert_false(holes_fit(&holes, 1));
}

static void test_neighbours_make_one_hole(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE, MIB(32));
    open_hole(&holes, BASE + MIB(64), MIB(32));
    assert_false(holes_fit(&holes, MIB(33)));
    open_hole(&holes, BASE + MIB(32), MIB(32));
    assert_int_equal(holes.count, 1);
    assert_true(holes_fit(&holes, MIB(96)));
    assert_false(holes_fit(&holes, MIB(96) + 1));
}

static void test_an_allocation_splits_the_hole_that_it_lies_in(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE, MIB(10));
    holes_fill(&holes, BASE + MIB(4), MIB(1), 0, true);
    assert_true(holes_fit(&holes, MIB(5)));
    assert_false(holes_fit(&holes, MIB(5) + 1));
    holes_fill(&holes, BASE + MIB(5), MIB(5), 0, true);
    assert_true(holes_fit(&holes, MIB(4)));
    assert_false(holes_fit(&holes, MIB(4) + 1));
}

static void test_the_rest_of_a_new_chunk_is_a_hole(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_fill(&holes, BASE, MIB(33), MIB(64), true);
    assert_true(holes_fit(&holes, MIB(31)));
    assert_false(holes_fit(&holes, MIB(31) + 1));
    /* It begins in the rest, and the pool grew for the other part. */
    holes_fill(&holes, BASE + MIB(33), MIB(40), MIB(32), true);
    assert_true(holes_fit(&holes, MIB(96 - 73)));
    assert_int_equal(holes.count, 1);
}

static void test_backing_that_came_from_nowhere_came_from_an_idle_chunk(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE, MIB(40)); /* a chunk, and 8 MiB of the next */
    holes_fill(&holes, BASE + MIB(320), MIB(64), 0, true);
    assert_true(holes_fit(&holes, MIB(8)));
    assert_false(holes_fit(&holes, MIB(8) + 1));
}

static void test_a_hole_that_the_driver_did_not_use_is_none(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE, MIB(20));
    open_hole(&holes, BASE + MIB(40), MIB(4));
    holes_fill(&holes, BASE + MIB(320), MIB(10), MIB(32), false);
    assert_true(holes_fit(&holes, MIB(4)));
    assert_false(holes_fit(&holes, MIB(4) + 1));
}

static void test_among_others_the_rest_of_a_chunk_may_be_anybodys(void **state)
{
    struct holes holes = {0};
    (void)state;
    holes_fill(&holes, BASE, MIB(33), MIB(64), false);
    assert_false(holes_fit(&holes, 1));
}

static void test_of_a_pool_that_shrank_only_whole_chunks_are_gone(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE - MIB(1), MIB(32 + 3));
    holes_shrink(&holes);
    assert_int_equal(holes.count, 2);
    assert_true(holes_fit(&holes, MIB(2)));
    assert_false(holes_fit(&holes, MIB(2) + 1));
}

static void test_sizes_count_in_grains_of_512(void **state)
{
    struct holes holes = {0};
    (void)state;
    open_hole(&holes, BASE, 1);
    open_hole(&holes, BASE + 512, 1);
    assert_true(holes_fit(&holes, 1024));
    holes_fill(&holes, BASE, 700, 0, true);
    assert_int_equal(holes.count, 0);
}

static void test_the_largest_are_remembered(void **state)
{
    struct holes holes = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        open_hole(&holes, BASE + i * MIB(4), (i * 37 % 1000 + 1) * 512);
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
        /* Not where a chunk begins: such a place says that the whole chunk was idle. */
        size_t at = 1 + (size_t)random() % GRAINS, grains = 1 + (size_t)random() % 40;
        bool opens = random() % 2;
        if (at + grains > GRAINS)
            continue;
        if (opens)
            open_hole(&holes, BASE + at * 512, grains * 512);
        else if (memchr(&is_free[at], false, grains))
            continue; /* the driver places into what is backed, or grows */
        else
            holes_fill(&holes, BASE + at * 512, grains * 512, 0, true);
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
        cmocka_unit_test(test_what_is_leaving_is_no_hole_yet_and_can_be_filled),
        cmocka_unit_test(test_what_stays_is_no_hole),
        cmocka_unit_test(test_neighbours_make_one_hole),
        cmocka_unit_test(test_an_allocation_splits_the_hole_that_it_lies_in),
        cmocka_unit_test(test_the_rest_of_a_new_chunk_is_a_hole),
        cmocka_unit_test(test_backing_that_came_from_nowhere_came_from_an_idle_chunk),
        cmocka_unit_test(test_a_hole_that_the_driver_did_not_use_is_none),
        cmocka_unit_test(test_among_others_the_rest_of_a_chunk_may_be_anybodys),
        cmocka_unit_test(test_of_a_pool_that_shrank_only_whole_chunks_are_gone),
        cmocka_unit_test(test_sizes_count_in_grains_of_512),
        cmocka_unit_test(test_the_largest_are_remembered),
        cmocka_unit_test(test_random_operations_never_claim_room_that_is_not_there),
    };
    return cmocka_run_group_tests_name("holes", tests, NULL, NULL);
}
