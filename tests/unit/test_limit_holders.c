/* SPDX-License-Identifier: MIT
 *
 * shim/limit_holders.c: the largest by name, and sums that add up to what is in use.
 */
#include "limit_fixture.h"

#include "books.h"
#include "limit_holders.h"
#include "limit_overhead.h"
#include "limit_pools.h"

#include <stdlib.h>

static void assert_named(const struct limit_holders *holders, unsigned number, const char *text,
                         uint64_t bytes, uint64_t count)
{
    assert_true(number < holders->named_count);
    assert_string_equal(holders->named[number].text, text);
    assert_int_equal(holders->named[number].bytes, bytes);
    assert_int_equal(holders->named[number].count, count);
}

/* The driver's own figure for the process is so much. */
static void figure(uint64_t bytes)
{
    struct limit_look look;
    limit_look_begin(&look, 0);
    assert_true(limit_look_end(&look, NULL, bytes, false));
}

static void test_the_three_largest_are_named_and_the_others_counted(void **state)
{
    static const struct limit_holder added[] = {{"a", 10, 1}, {"b", 50, 2}, {"none", 0, 0},
                                                {"c", 20, 3}, {"d", 50, 4}, {"e", 40, 5}};
    struct limit_holders holders = {0};
    (void)state;
    for (unsigned i = 0; i < sizeof added / sizeof added[0]; i++)
        limit_holders_add(&holders, added[i].text, added[i].bytes, added[i].count);
    assert_int_equal(holders.named_count, 3);
    assert_named(&holders, 0, "b", 50, 2);
    assert_named(&holders, 1, "d", 50, 4);
    assert_named(&holders, 2, "e", 40, 5);
    assert_int_equal(holders.others, 2);
    assert_int_equal(holders.others_bytes, 30);
    assert_int_equal(holders.used_bytes, 170);
}

static void test_overhead_is_named_however_small(void **state)
{
    struct limit_holders holders = {0};
    (void)state;
    for (uint64_t bytes = 10; bytes < 50; bytes += 10)
        limit_holders_add(&holders, "a kind", bytes, 1);
    limit_holders_add_overhead(&holders, 25);
    assert_int_equal(holders.named_count, 4);
    assert_named(&holders, 2, "overhead: context, code, streams", 25, 0);
    assert_named(&holders, 3, "a kind", 20, 1);
    assert_int_equal(holders.others, 1);
    assert_int_equal(holders.overhead_bytes, 25);
    assert_int_equal(holders.used_bytes, 125);
}

static void test_a_device_that_holds_nothing_has_no_holders(void **state)
{
    struct limit_holders holders;
    (void)state;
    limit_holders_by_kind(0, &holders);
    assert_int_equal(holders.named_count, 0);
    assert_int_equal(holders.others, 0);
    assert_int_equal(holders.used_bytes, 0);
}

static void test_kinds_overhead_and_requests_under_way_add_up_to_what_is_in_use(void **state)
{
    struct limit_holders holders;
    struct ticket ticket;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(3)));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(4), MIB(96)));
    assert_true(take(GPULIMIT_KIND_MANAGED, CONTEXT, BASE + MIB(200), MIB(40)));
    figure(MIB(618)); /* which leaves out managed memory */
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(10)));
    limit_holders_by_kind(0, &holders);
    assert_named(&holders, 0, "overhead: context, code, streams", MIB(518), 0);
    assert_named(&holders, 1, "cuMemAlloc, cuMemAllocPitch", MIB(100), 2);
    assert_named(&holders, 2, "cuMemAllocManaged", MIB(40), 1);
    assert_named(&holders, 3, "requests under way", MIB(10), 0);
    assert_int_equal(holders.overhead_bytes, MIB(518));
    assert_int_equal(holders.used_bytes, budget_used(0));
    limit_cancel(&ticket);
    give(BASE);
    give(BASE + MIB(4));
    give(BASE + MIB(200));
    figure(0);
}

/* An allocation of a site that is known by that name. */
static void take_at(const char *name, uint64_t hash, uint64_t address, uint64_t bytes)
{
    static const struct gpulimit_site site = {.native_count = 1};
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, address, bytes));
    struct books *books = books_lock();
    struct ledger_entry *entry = ledger_at(&books->ledger, ledger_find(&books->ledger, address));
    entry->site = sites_add(&books->sites, hash, &site, name);
    books_unlock();
}

static void test_sites_of_one_line_are_one_and_what_has_none_goes_by_its_kind(void **state)
{
    struct limit_holders holders;
    (void)state;
    take_at("train.py:8 step", 1, BASE, MIB(30));
    take_at("train.py:9 step", 2, BASE + MIB(100), MIB(50));
    take_at("train.py:8 step", 3, BASE + MIB(200), MIB(40)); /* by another way to the same line */
    assert_true(take(GPULIMIT_KIND_MANAGED, CONTEXT, BASE + MIB(300), MIB(20)));
    limit_holders_by_site(0, &holders);
    assert_named(&holders, 0, "train.py:8 step", MIB(70), 2);
    assert_named(&holders, 1, "train.py:9 step", MIB(50), 1);
    assert_named(&holders, 2, "cuMemAllocManaged", MIB(20), 0);
    assert_int_equal(holders.used_bytes, budget_used(0));
    limit_holders_by_site(1, &holders);
    assert_int_equal(holders.named_count, 0);
    give(BASE);
    give(BASE + MIB(200));
    limit_holders_by_site(0, &holders);
    assert_named(&holders, 0, "train.py:9 step", MIB(50), 1);
    give(BASE + MIB(100));
    give(BASE + MIB(300));
}

static void test_what_a_pool_holds_beyond_its_allocations_is_said_to_be_idle(void **state)
{
    struct limit_holders holders;
    (void)state;
    pool_bytes = MIB(64);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(10)));
    struct books *books = books_lock();
    ledger_at(&books->ledger, ledger_find(&books->ledger, BASE))->site = 1;
    assert_non_null(books->sites.called);
    books_unlock();
    limit_holders_by_site(0, &holders);
    assert_int_equal(holders.used_bytes, budget_used(0));
    assert_named(&holders, 0, "idle in memory pools", budget_used(0) - MIB(10), 0);
    assert_named(&holders, 1, "train.py:8 step", MIB(10), 1);
    give(BASE);
    pool_bytes = 0;
    struct pool_reading empty = pool_says();
    limit_pool_answer(POOL, &empty);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        GATE(test_the_three_largest_are_named_and_the_others_counted),
        GATE(test_overhead_is_named_however_small),
        GATE(test_a_device_that_holds_nothing_has_no_holders),
        GATE(test_kinds_overhead_and_requests_under_way_add_up_to_what_is_in_use),
        GATE(test_sites_of_one_line_are_one_and_what_has_none_goes_by_its_kind),
        GATE(test_what_a_pool_holds_beyond_its_allocations_is_said_to_be_idle),
    };
    setenv("GPU_LIMIT_STACKS", "off", 1); /* the tests give sites of their own */
    return cmocka_run_group_tests_name("limit_holders", tests, start, NULL);
}
