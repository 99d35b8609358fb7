/* SPDX-License-Identifier: MIT
 *
 * shim/blocks.c: the 2 MiB block rule, against a plain count of users for each block.
 */
#include "unit.h"

#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x7f0000000000)

static uint64_t added(struct blocks *blocks, uint64_t address, uint64_t bytes)
{
    uint64_t touched;
    assert_true(blocks_add(blocks, address, bytes, &touched));
    return touched;
}

static void test_small_pieces_share_a_block(void **state)
{
    struct blocks blocks = {0};
    (void)state;
    assert_int_equal(added(&blocks, BASE, 1), MIB(2));
    assert_int_equal(added(&blocks, BASE + 512, MIB(1)), 0);
    assert_int_equal(blocks_remove(&blocks, BASE, 1), 0);
    assert_int_equal(blocks_remove(&blocks, BASE + 512, MIB(1)), MIB(2));
    table_clear(&blocks.users);
}

static void test_whole_blocks_are_arithmetic_and_their_rest_is_shared(void **state)
{
    struct blocks blocks = {0};
    (void)state;
    assert_int_equal(added(&blocks, BASE, MIB(1024)), MIB(1024));
    assert_int_equal(blocks.users.count, 0);
    assert_int_equal(added(&blocks, BASE + MIB(1024), MIB(2) + 1), MIB(4));
    assert_int_equal(added(&blocks, BASE + MIB(1027), 4096), 0);
    assert_int_equal(blocks_remove(&blocks, BASE + MIB(1024), MIB(2) + 1), MIB(2));
    assert_int_equal(blocks_remove(&blocks, BASE + MIB(1027), 4096), MIB(2));
    assert_int_equal(blocks_remove(&blocks, BASE, MIB(1024)), MIB(1024));
    assert_int_equal(blocks.users.count, 0);
    table_clear(&blocks.users);
}

static void test_a_piece_may_straddle_two_blocks(void **state)
{
    struct blocks blocks = {0};
    (void)state;
    assert_int_equal(added(&blocks, BASE + MIB(2) - 512, 1024), MIB(4));
    assert_int_equal(added(&blocks, BASE + MIB(2) + 512, 512), 0);
    assert_int_equal(blocks_remove(&blocks, BASE + MIB(2) - 512, 1024), MIB(2));
    assert_int_equal(blocks_remove(&blocks, BASE + MIB(2) + 512, 512), MIB(2));
    table_clear(&blocks.users);
}

/* Pieces placed as a driver would, without overlap: first fit over units of 512 bytes. */
static void test_random_pieces_agree_with_a_plain_count(void **state)
{
    enum { UNITS_A_BLOCK = 4096, BLOCKS = 32, UNITS = BLOCKS * UNITS_A_BLOCK, PIECES = 200 };
    static bool taken[UNITS];
    static unsigned users[BLOCKS];
    static struct {
        size_t unit, units;
    } pieces[PIECES];
    struct blocks blocks = {0};
    uint64_t committed = 0;
    (void)state;
    srandom(21);
    for (unsigned step = 0; step < 4000; step++) {
        size_t i = (size_t)random() % PIECES;
        bool is_adding = pieces[i].units == 0;
        if (is_adding) {
            size_t units = 1 + (size_t)random() % (random() % 3 ? 2000 : 9000), run = 0, unit = 0;
            while (unit < UNITS && run < units)
                run = taken[unit++] ? 0 : run + 1;
            if (run < units)
                continue;
            pieces[i].unit = unit - units;
            pieces[i].units = units;
            committed += added(&blocks, BASE + pieces[i].unit * 512, units * 512 - 100);
        } else {
            committed -=
                blocks_remove(&blocks, BASE + pieces[i].unit * 512, pieces[i].units * 512 - 100);
        }
        size_t first = pieces[i].unit, last = first + pieces[i].units - 1;
        memset(&taken[first], is_adding, pieces[i].units);
        for (size_t block = first / UNITS_A_BLOCK; block <= last / UNITS_A_BLOCK; block++)
            users[block] += is_adding ? 1u : -1u;
        if (!is_adding)
            pieces[i].units = 0;
        uint64_t expected = 0;
        for (size_t block = 0; block < BLOCKS; block++)
            expected += users[block] ? MIB(2) : 0;
        assert_int_equal(committed, expected);
    }
    table_clear(&blocks.users);
}

static void test_the_most_is_rounded_up_and_saturates(void **state)
{
    (void)state;
    assert_int_equal(blocks_most(1), MIB(2));
    assert_int_equal(blocks_most(MIB(2)), MIB(2));
    assert_int_equal(blocks_most(MIB(2) + 1), MIB(4));
    assert_true(blocks_most(UINT64_MAX) == UINT64_MAX);
    assert_true(blocks_most(UINT64_MAX - 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_pieces_share_a_block),
        cmocka_unit_test(test_whole_blocks_are_arithmetic_and_their_rest_is_shared),
        cmocka_unit_test(test_a_piece_may_straddle_two_blocks),
        cmocka_unit_test(test_random_pieces_agree_with_a_plain_count),
        cmocka_unit_test(test_the_most_is_rounded_up_and_saturates),
    };
    return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
