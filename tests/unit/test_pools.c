/* SPDX-License-Identifier: MIT
 *
 * shim/pools.c: what a pool is charged with, alone and with several threads under way.
 */
#include "unit.h"

#include "pools.h"

static struct pools pools;
static struct pool *pool;
static uint64_t number;

static int reset(void **state)
{
    (void)state;
    pools = (struct pools){0};
    number = 0;
    pool = pools_insert(&pools, 0x1000, 0);
    return pool == NULL;
}

static struct pool_reading reading(uint64_t reserved_bytes)
{
    return (struct pool_reading){.number = ++number, .reserved_bytes = reserved_bytes};
}

static int64_t end(uint64_t held_bytes, uint64_t reserved_bytes)
{
    struct pool_reading now = reading(reserved_bytes);
    return pools_end(pool, held_bytes, &now);
}

static void test_growth_is_what_the_driver_says(void **state)
{
    (void)state;
    pools_begin(pool, MIB(32));
    assert_int_equal(end(MIB(32), MIB(32)), MIB(32));
    pools_begin(pool, MIB(32));
    assert_int_equal(end(MIB(32), MIB(32)), 0);
    struct pool_reading now = reading(0);
    assert_int_equal(pools_update(pool, &now), -(int64_t)MIB(32));
}

static void test_growth_of_two_under_way_is_not_counted_twice(void **state)
{
    (void)state;
    pools_begin(pool, MIB(128));
    pools_begin(pool, MIB(128));
    /* The first to end sees the growth of both; the second still holds its own part. */
    assert_int_equal(end(MIB(128), MIB(256)), MIB(128));
    assert_int_equal(end(MIB(128), MIB(256)), MIB(128));
    assert_int_equal(pool->reserved_bytes, MIB(256));
}

static void test_one_that_ends_without_growth_leaves_the_others_room(void **state)
{
    (void)state;
    pools_begin(pool, MIB(128));
    pools_begin(pool, MIB(128));
    assert_int_equal(end(MIB(128), 0), 0);
    assert_int_equal(end(MIB(128), MIB(128)), MIB(128));
}

static void test_a_slow_old_reading_does_not_overwrite_a_newer_one(void **state)
{
    (void)state;
    pools_begin(pool, MIB(32));
    pools_begin(pool, MIB(32));
    struct pool_reading old = reading(MIB(32));
    struct pool_reading newer = reading(MIB(64));
    assert_int_equal(pools_end(pool, MIB(32), &newer), MIB(32));
    assert_int_equal(pools_end(pool, MIB(32), &old), MIB(32));
    assert_int_equal(pool->reserved_bytes, MIB(64));
}

static void test_a_reading_that_failed_changes_nothing(void **state)
{
    struct pool_reading failed = {0};
    (void)state;
    pools_begin(pool, MIB(32));
    assert_int_equal(end(MIB(32), MIB(32)), MIB(32));
    assert_int_equal(pools_update(pool, &failed), 0);
    assert_int_equal(pool->reserved_bytes, MIB(32));
}

static void test_growth_beyond_what_was_held_is_reported(void **state)
{
    (void)state;
    pools_begin(pool, 0);
    assert_int_equal(end(0, MIB(64)), MIB(64));
}

static void test_a_cancelled_one_gives_back_what_it_held(void **state)
{
    (void)state;
    pools_begin(pool, MIB(64));
    assert_int_equal(pools_cancel(pool, MIB(64)), 0);
    assert_int_equal(pool->pending_bytes, 0);
    assert_int_equal(pool->reserved_bytes, 0);
}

static void test_whole_chunks_that_are_holes_are_forgotten_when_the_pool_has_shrunk(void **state)
{
    struct pool_reading now = {.number = 1, .reserved_bytes = MIB(64)};
    (void)state;
    pools_update(pool, &now);
    holes_leave(&pool->holes, MIB(32), MIB(40));
    holes_open(&pool->holes, MIB(32), MIB(40));
    now = (struct pool_reading){.number = 2, .reserved_bytes = MIB(96)};
    pools_update(pool, &now);
    assert_true(holes_fit(&pool->holes, MIB(40)));
    now = (struct pool_reading){.number = 3, .reserved_bytes = MIB(64)};
    pools_update(pool, &now);
    assert_true(holes_fit(&pool->holes, MIB(8)));
    assert_false(holes_fit(&pool->holes, MIB(8) + 1));
}

static void test_alone_is_who_begins_and_ends_without_another(void **state)
{
    (void)state;
    uint32_t first = pools_begin(pool, 0);
    end(0, 0);
    assert_true(pools_was_alone(pool, first));
    first = pools_begin(pool, 0);
    uint32_t second = pools_begin(pool, 0);
    end(0, 0);
    assert_false(pools_was_alone(pool, first));
    end(0, 0);
    assert_false(pools_was_alone(pool, second));
    first = pools_begin(pool, 0);
    end(0, 0);
    assert_true(pools_was_alone(pool, first));
}

static void test_places_are_used_again(void **state)
{
    (void)state;
    assert_ptr_equal(pools_insert(&pools, 0x1000, 0), pool);
    for (uint64_t handle = 1; handle < POOLS_MAX; handle++)
        assert_non_null(pools_insert(&pools, 0x10000 + handle, 0));
    assert_null(pools_insert(&pools, 0x999999, 0));
    pools_remove(pools_find(&pools, 0x10005));
    assert_non_null(pools_insert(&pools, 0x999999, 0));
    assert_null(pools_find(&pools, 0x10005));
    assert_null(pools_find(&pools, 0));
}

enum { STREAM = 0x50, OTHER = 0x58 };

static void test_it_is_over_when_the_last_free_of_a_destroyed_pool_was_waited_for(void **state)
{
    (void)state;
    pools_free_on(pool, STREAM, 7);
    pool->live = 1;
    pool->handle = 0;
    pools_synchronize(pool, STREAM, 7);
    assert_false(pools_is_over(pool)); /* one is not freed */
    pool->live = 0;
    assert_true(pools_is_over(pool));
    pools_free_on(pool, STREAM, 8);
    pools_synchronize(pool, OTHER, 8);
    assert_false(pools_is_over(pool));
    pools_synchronize(pool, STREAM, 7); /* began before the free */
    assert_false(pools_is_over(pool));
    pools_synchronize(pool, STREAM, 8);
    assert_true(pools_is_over(pool));
}

static void test_frees_on_several_streams_wait_for_all_of_the_context(void **state)
{
    (void)state;
    pool->handle = 0;
    pools_free_on(pool, STREAM, 1);
    pools_free_on(pool, OTHER, 2);
    pools_synchronize(pool, STREAM, 2);
    pools_synchronize(pool, OTHER, 2);
    pools_synchronize(pool, QUEUE_THREAD_STREAM, 2); /* some thread's, not every thread's */
    assert_false(pools_is_over(pool));
    pools_synchronize(pool, QUEUE_EVERY_STREAM, 2);
    assert_true(pools_is_over(pool));
}

static void test_the_most_is_whole_chunks_and_saturates(void **state)
{
    (void)state;
    assert_int_equal(pools_most(1), MIB(32));
    assert_int_equal(pools_most(MIB(33)), MIB(64));
    assert_int_equal(pools_most(MIB(1024)), MIB(1024));
    assert_true(pools_most(UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_growth_is_what_the_driver_says, reset),
        cmocka_unit_test_setup(test_growth_of_two_under_way_is_not_counted_twice, reset),
        cmocka_unit_test_setup(test_one_that_ends_without_growth_leaves_the_others_room, reset),
        cmocka_unit_test_setup(test_a_slow_old_reading_does_not_overwrite_a_newer_one, reset),
        cmocka_unit_test_setup(test_a_reading_that_failed_changes_nothing, reset),
        cmocka_unit_test_setup(test_growth_beyond_what_was_held_is_reported, reset),
        cmocka_unit_test_setup(test_a_cancelled_one_gives_back_what_it_held, reset),
        cmocka_unit_test_setup(
            test_whole_chunks_that_are_holes_are_forgotten_when_the_pool_has_shrunk, reset),
        cmocka_unit_test_setup(test_alone_is_who_begins_and_ends_without_another, reset),
        cmocka_unit_test_setup(test_places_are_used_again, reset),
        cmocka_unit_test_setup(
            test_it_is_over_when_the_last_free_of_a_destroyed_pool_was_waited_for, reset),
        cmocka_unit_test_setup(test_frees_on_several_streams_wait_for_all_of_the_context, reset),
        cmocka_unit_test_setup(test_the_most_is_whole_chunks_and_saturates, reset),
    };
    return cmocka_run_group_tests_name("pools", tests, NULL, NULL);
}
