/* SPDX-License-Identifier: MIT
 *
 * shim/limit_pools.c and limit_later.c: the gate for stream-ordered memory, and for what is freed
 * in stream order.
 */
#include "limit_fixture.h"

#include <pthread.h>

#include "limit_contexts.h"
#include "limit_later.h"
#include "limit_pools.h"

static void test_a_pool_is_charged_by_its_reserve_and_trimmed_before_a_refusal(void **state)
{
    (void)state;
    pool_bytes = MIB(640);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(630)));
    assert_int_equal(budget_used(0), MIB(640));
    give(BASE);
    assert_int_equal(budget_used(0), MIB(640)); /* the pool keeps it */
    idle_bytes = MIB(640);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(2048), MIB(900)));
    assert_int_equal(reclaims, 1);
    assert_int_equal(budget_used(0), MIB(900));
    give(BASE + MIB(2048));
}

static void test_a_pool_serves_from_a_hole_when_the_budget_is_full(void **state)
{
    (void)state;
    pool_bytes = MIB(1024);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(1000)));
    assert_false(take(GPULIMIT_KIND_ASYNC, POOL, BASE + MIB(1000), MIB(25)));
    free_later(BASE);
    /* Freed in stream order, perhaps not yet done: no trim gives it back, but the pool hands it out
     * again. */
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(900)));
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE + MIB(900), MIB(100)));
    assert_false(take(GPULIMIT_KIND_ASYNC, POOL, BASE + MIB(1000), MIB(25)));
    assert_int_equal(budget_used(0), MIB(1024));
    give(BASE);
    give(BASE + MIB(900));
    synchronize();
    limit_pool_detach(POOL);
    limit_pool_release(POOL);
    pool_bytes = 0;
}

static void test_a_pool_that_grew_after_all_stays_charged_until_it_is_trimmed(void **state)
{
    struct ticket ticket;
    (void)state;
    pool_bytes = MIB(1024);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(1000)));
    free_later(BASE);
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, 0, POOL, API_cuMemAllocAsync, MIB(900)));
    assert_true(ticket.has_grace);
    pool_bytes = MIB(1984);
    ticket.reading = pool_says();
    assert_false(limit_commit(&ticket, BASE + MIB(4096), MIB(900)));
    assert_false(budget_take_grace(0)); /* not before what did not fit is freed */
    limit_give_up(&ticket);
    assert_int_equal(budget_used(0), MIB(1984));
    pool_bytes = 0;
    struct pool_reading trimmed = pool_says();
    limit_pool_update(POOL, &trimmed);
    synchronize();
}

static void test_who_counts_on_a_hole_gets_what_others_of_the_pool_did_not_need(void **state)
{
    struct ticket other, grace, third;
    (void)state;
    pool_bytes = MIB(960);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(960)));
    free_later(BASE);
    assert_true(limit_reserve(&other, GPULIMIT_KIND_ASYNC, 0, POOL, API_cuMemAllocAsync, MIB(64)));
    assert_false(other.has_grace);
    assert_true(limit_reserve(&grace, GPULIMIT_KIND_ASYNC, 0, POOL, API_cuMemAllocAsync, MIB(960)));
    assert_true(grace.has_grace);
    /* The other one is placed in the hole, so that the pool must grow for this one. */
    other.reading = pool_says();
    assert_true(limit_commit(&other, BASE, MIB(64)));
    assert_false(
        limit_reserve(&third, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(64)));
    pool_bytes = MIB(1024);
    grace.reading = pool_says();
    assert_true(limit_commit(&grace, BASE + MIB(64), MIB(960)));
    assert_int_equal(budget_used(0), MIB(1024));
    give(BASE);
    give(BASE + MIB(64));
    limit_pool_detach(POOL);
    limit_pool_release(POOL);
    pool_bytes = 0;
    synchronize();
}

static void test_a_destroyed_pool_goes_with_its_last_allocation(void **state)
{
    (void)state;
    pool_bytes = MIB(32);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(1)));
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE + MIB(1), MIB(1)));
    limit_pool_detach(POOL);
    limit_pool_release(POOL);
    give(BASE);
    assert_int_equal(budget_used(0), MIB(32));
    give(BASE + MIB(1));
    pool_bytes = 0;
}

static void test_linear_memory_freed_in_stream_order_counts_until_it_is_back(void **state)
{
    uint32_t cursor = UINT32_MAX;
    (void)state;
    limit_begin_look();
    assert_false(limit_awaits());
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(600)));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(600), MIB(100)));
    free_later(BASE);
    free_later(BASE + MIB(600));
    assert_true(limit_awaits());
    assert_int_equal(budget_used(0), MIB(700));
    assert_int_equal(totals(0)->live_allocations, 0);
    assert_int_equal(totals(0)->charged_bytes, MIB(700));
    assert_int_equal(limit_later_next(&cursor), BASE + MIB(600));
    assert_int_equal(limit_later_next(&cursor), BASE);
    assert_int_equal(limit_later_next(&cursor), 0);
    limit_later_is_back(BASE);
    assert_int_equal(budget_used(0), MIB(100));
    limit_begin_look();
    assert_true(limit_awaits());
    limit_later_is_back(BASE + MIB(600));
    limit_begin_look();
    assert_false(limit_awaits());
}

static void test_one_look_finds_all_that_is_back(void **state)
{
    uint32_t cursor = UINT32_MAX;
    uint64_t address;
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(4 * i), MIB(4)));
        free_later(BASE + MIB(4 * i));
    }
    while ((address = limit_later_next(&cursor)) != 0)
        limit_later_is_back(address);
    assert_int_equal(budget_used(0), 0);
}

static void test_a_block_stays_while_a_piece_freed_in_stream_order_is_in_it(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, 4096));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + 4096, 4096));
    free_later(BASE);
    give(BASE + 4096);
    assert_int_equal(budget_used(0), MIB(2));
    limit_later_is_back(BASE);
}

static void test_an_address_handed_out_again_is_back(void **state)
{
    uint32_t cursor = UINT32_MAX;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    free_later(BASE);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(50)));
    assert_int_equal(limit_later_next(&cursor), 0);
    assert_int_equal(budget_used(0), MIB(50));
    give(BASE);
}

static void test_a_context_takes_along_what_was_freed_in_stream_order(void **state)
{
    (void)state;
    limit_context_created(OTHER, 0, 0);
    assert_true(take(GPULIMIT_KIND_LINEAR, OTHER, BASE, MIB(10)));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(10), MIB(20)));
    free_later(BASE);
    free_later(BASE + MIB(10));
    limit_context_destroyed(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(20));
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(budget_used(0), 0);
}

static void *note(void *argument)
{
    limit_note_thread();
    return argument;
}

/* The last of them: there is no way back to one thread. */
static void test_where_several_threads_use_pools_nobody_counts_on_a_hole(void **state)
{
    pthread_t other;
    (void)state;
    pool_bytes = MIB(1024);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(1000)));
    free_later(BASE);
    assert_false(limit_is_threaded());
    assert_int_equal(pthread_create(&other, NULL, note, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_true(limit_is_threaded());
    unsigned before = reclaims;
    assert_false(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(900))); /* nothing is idle yet */
    assert_int_equal(reclaims, before + 1);
    idle_bytes = MIB(1024);
    assert_true(take(GPULIMIT_KIND_ASYNC, POOL, BASE, MIB(900)));
    give(BASE);
    synchronize();
    limit_pool_detach(POOL);
    limit_pool_release(POOL);
    pool_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_a_pool_is_charged_by_its_reserve_and_trimmed_before_a_refusal),
        GATE(test_a_pool_serves_from_a_hole_when_the_budget_is_full),
        GATE(test_a_pool_that_grew_after_all_stays_charged_until_it_is_trimmed),
        GATE(test_who_counts_on_a_hole_gets_what_others_of_the_pool_did_not_need),
        GATE(test_a_destroyed_pool_goes_with_its_last_allocation),
        GATE(test_linear_memory_freed_in_stream_order_counts_until_it_is_back),
        GATE(test_one_look_finds_all_that_is_back),
        GATE(test_a_block_stays_while_a_piece_freed_in_stream_order_is_in_it),
        GATE(test_an_address_handed_out_again_is_back),
        GATE(test_a_context_takes_along_what_was_freed_in_stream_order),
        GATE(test_where_several_threads_use_pools_nobody_counts_on_a_hole),
    };
    return cmocka_run_group_tests_name("limit_pools", tests, start, NULL);
}
