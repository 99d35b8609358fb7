/* SPDX-License-Identifier: MIT
 *
 * shim/limit_live.c: the largest call sites one by one, and sums that are what is in use, to the
 * byte.
 */
#include "limit_fixture.h"

#include "books.h"
#include "limit_live.h"
#include "limit_overhead.h"
#include "limit_pools.h"

#include <stdlib.h>

static struct limit_live live;

/* The driver's own figure for the process is so much. */
static void figure(uint64_t bytes)
{
    struct limit_look look;
    limit_look_begin(&look, 0);
    assert_true(limit_look_end(&look, NULL, bytes, false));
}

/* Of the device's books now, which must add up. */
static void look_live(void)
{
    uint64_t sum, by_kind = 0;
    limit_live_take(0, &live);
    sum = live.others_bytes + live.without_site_bytes + live.idle_bytes + live.under_way_bytes +
          live.overhead_bytes;
    for (unsigned i = 0; i < live.top_count; i++)
        sum += live.top[i].bytes;
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        by_kind += live.totals.by_kind[kind].bytes;
    assert_int_equal(live.used_bytes, budget_used(0));
    assert_int_equal(sum, live.used_bytes);
    assert_int_equal(by_kind + live.under_way_bytes + live.overhead_bytes, live.used_bytes);
}

static uint32_t site_at(uint64_t hash)
{
    static const struct gpulimit_site site = {.native_count = 1};
    uint32_t number = sites_add(&books_lock()->sites, hash, &site, "here");
    books_unlock();
    return number;
}

static struct ledger_entry *entry_at(uint64_t address)
{
    struct books *books = books_lock();
    struct ledger_entry *entry = ledger_at(&books->ledger, ledger_find(&books->ledger, address));
    books_unlock();
    return entry;
}

static void take_at(uint64_t hash, uint64_t address, uint64_t bytes)
{
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, address, bytes));
    entry_at(address)->site = site_at(hash);
}

static void test_nothing_held_is_nothing(void **state)
{
    (void)state;
    look_live();
    assert_int_equal(live.used_bytes, 0);
    assert_int_equal(live.top_count, 0);
}

static void test_sites_come_by_size_with_their_count_and_the_oldest(void **state)
{
    (void)state;
    take_at(1, BASE, MIB(30));
    take_at(2, BASE + MIB(100), MIB(50));
    take_at(1, BASE + MIB(200), MIB(40));
    entry_at(BASE)->born_mono_ns = 1000;
    entry_at(BASE + MIB(200))->born_mono_ns = 900;
    look_live();
    assert_int_equal(live.top_count, 2);
    assert_int_equal(live.top[0].site, site_at(1));
    assert_int_equal(live.top[0].bytes, MIB(70));
    assert_int_equal(live.top[0].count, 2);
    assert_int_equal(live.top[0].oldest_mono_ns, 900);
    assert_int_equal(live.top[1].site, site_at(2));
    assert_int_equal(live.others, 0);
    give(BASE);
    give(BASE + MIB(100));
    give(BASE + MIB(200));
}

static void test_all_else_is_named_by_what_it_is(void **state)
{
    struct ticket ticket;
    (void)state;
    take_at(1, BASE, MIB(30));
    assert_true(take(GPULIMIT_KIND_MANAGED, CONTEXT, BASE + MIB(300), MIB(20)));
    pool_bytes = MIB(64);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE + MIB(400), MIB(10)));
    figure(MIB(300));
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(10)));
    look_live();
    assert_int_equal(live.without_site_bytes, MIB(30));
    assert_int_equal(live.without_site_count, 2);
    assert_int_equal(live.idle_bytes, MIB(54));
    assert_int_equal(live.under_way_bytes, MIB(10));
    assert_true(live.overhead_bytes > 0);
    limit_cancel(&ticket);
    give(BASE);
    give(BASE + MIB(300));
    give(BASE + MIB(400));
    pool_bytes = 0;
    struct pool_reading empty = pool_says();
    limit_pool_answer(POOL, &empty);
    figure(0);
}

/* Small pieces of one block: the first of them has it all. */
static void test_pieces_of_a_block_count_though_only_one_of_them_holds_it(void **state)
{
    (void)state;
    take_at(1, BASE, 1000);
    take_at(2, BASE + 4096, 1000);
    look_live();
    assert_int_equal(live.top_count, 2);
    assert_int_equal(live.top[0].bytes, MIB(2));
    assert_int_equal(live.top[1].bytes, 0);
    assert_int_equal(live.top[1].count, 1);
    give(BASE);
    give(BASE + 4096);
}

static void test_the_fifty_largest_are_named_wherever_they_come(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 70; i++) { /* 1 to 70 pages, in no order */
        uint64_t address = BASE + i * MIB(64);
        assert_true(take(GPULIMIT_KIND_MANAGED, CONTEXT, address, (i + 1) * 37 % 71 * 4096));
        entry_at(address)->site = site_at(100 + i);
    }
    look_live();
    assert_int_equal(live.top_count, LIMIT_LIVE_SITES);
    for (unsigned i = 1; i < live.top_count; i++)
        assert_true(live.top[i - 1].bytes >= live.top[i].bytes);
    assert_int_equal(live.others, 20);
    assert_int_equal(live.others_count, 20);
    assert_int_equal(live.top[0].bytes, 70 * 4096);
    assert_int_equal(live.top[49].bytes, 21 * 4096);
    assert_int_equal(live.others_bytes, 20 * 21 / 2 * 4096);
    for (unsigned i = 0; i < 70; i++)
        give(BASE + i * MIB(64));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        GATE(test_nothing_held_is_nothing),
        GATE(test_sites_come_by_size_with_their_count_and_the_oldest),
        GATE(test_all_else_is_named_by_what_it_is),
        GATE(test_pieces_of_a_block_count_though_only_one_of_them_holds_it),
        GATE(test_the_fifty_largest_are_named_wherever_they_come),
    };
    setenv("GPU_LIMIT_STACKS", "off", 1); /* the tests give sites of their own */
    return cmocka_run_group_tests_name("limit_live", tests, start, NULL);
}
