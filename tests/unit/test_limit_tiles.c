/* SPDX-License-Identifier: MIT
 *
 * shim/limit_tiles.c: what lies in arrays stays charged, however their handles come and go.
 */
#include "limit_fixture.h"

#include "limit_contexts.h"
#include "limit_later.h"
#include "limit_tiles.h"
#include "limit_vmm.h"

#define ARRAY  UINT64_C(0xa0)
#define HANDLE UINT64_C(0xd0)

static const struct tiles_region all = {.end = {64, 64, 1}};
static const struct tiles_region half = {.end = {64, 32, 1}};
static const struct queue queue = {CONTEXT, STREAM};

/* Memory that only an array has. */
static void fill(uint64_t array, const struct tiles_region *region)
{
    uint32_t object;
    assert_true(take(GPULIMIT_KIND_VMM, 0, HANDLE, MIB(2)));
    limit_array_mapped(array, region, &queue, HANDLE);
    limit_handle_detach(HANDLE, &object);
    limit_handle_release(object);
}

static void destroy(uint64_t array)
{
    limit_array_destroyed(array, limit_context_mark());
}

static void test_a_handle_that_came_back_meanwhile_keeps_its_memory(void **state)
{
    (void)state;
    limit_array_created(ARRAY, 0, CONTEXT, false);
    fill(ARRAY, &all);
    uint64_t mark = limit_context_mark();
    /* Here the driver destroys it, and gives another thread its handle. */
    limit_array_created(ARRAY, 0, CONTEXT, false);
    assert_int_equal(budget_used(0), 0);
    fill(ARRAY, &all);
    limit_array_destroyed(ARRAY, mark);
    assert_int_equal(budget_used(0), MIB(2));
    destroy(ARRAY);
}

static void test_an_unmapping_after_the_mark_is_not_out(void **state)
{
    (void)state;
    limit_array_created(ARRAY, 0, CONTEXT, false);
    fill(ARRAY, &half);
    fill(ARRAY, &all);
    limit_tiles_synchronized(&queue, limit_sync_mark());
    assert_int_equal(limit_sync_mark(), 0);
    limit_array_unmapped(ARRAY, &half, &queue);
    uint64_t mark = limit_sync_mark();
    assert_int_not_equal(mark, 0);
    limit_array_unmapped(ARRAY, &all, &queue);
    limit_tiles_synchronized(&queue, mark);
    assert_int_equal(budget_used(0), MIB(2));
    limit_tiles_synchronized(&queue, limit_sync_mark());
    assert_int_equal(budget_used(0), 0);
    assert_int_equal(limit_sync_mark(), 0);
    destroy(ARRAY);
}

static void test_an_unmapping_that_may_overtake_waits_for_both_streams(void **state)
{
    struct queue second = {CONTEXT, STREAM + 8}, every = {CONTEXT, QUEUE_EVERY_STREAM};
    (void)state;
    limit_array_created(ARRAY, 0, CONTEXT, false);
    fill(ARRAY, &all);
    limit_array_unmapped(ARRAY, &all, &second);
    limit_tiles_synchronized(&second, limit_sync_mark());
    assert_int_equal(budget_used(0), MIB(2));
    limit_tiles_synchronized(&every, limit_sync_mark());
    assert_int_equal(budget_used(0), 0);
    fill(ARRAY, &all);
    limit_tiles_synchronized(&queue, limit_sync_mark());
    limit_array_unmapped(ARRAY, &all, &second);
    limit_tiles_synchronized(&second, limit_sync_mark());
    assert_int_equal(budget_used(0), 0);
    destroy(ARRAY);
}

static void test_a_streams_handle_that_came_back_means_another_stream(void **state)
{
    struct queue every = {CONTEXT, QUEUE_EVERY_STREAM}, elsewhere = {OTHER, 0};
    (void)state;
    limit_array_created(ARRAY, 0, CONTEXT, false);
    fill(ARRAY, &all);
    limit_array_unmapped(ARRAY, &all, &queue);
    limit_tiles_stream_ends(STREAM);
    limit_tiles_synchronized(&queue, limit_sync_mark());
    limit_tiles_synchronized(&elsewhere, limit_sync_mark());
    assert_int_equal(budget_used(0), MIB(2));
    limit_tiles_synchronized(&every, limit_sync_mark());
    assert_int_equal(budget_used(0), 0);
    destroy(ARRAY);
}

static void test_whatever_is_said_of_a_whole_array_means_all_of_it(void **state)
{
    (void)state;
    limit_array_created(ARRAY, 0, CONTEXT, true);
    fill(ARRAY, &all);
    limit_array_unmapped(ARRAY, &half, &queue);
    limit_tiles_synchronized(&queue, limit_sync_mark());
    assert_int_equal(budget_used(0), 0);
    destroy(ARRAY);
}

static void test_an_array_of_nobodys_keeps_its_memory_until_it_is_destroyed(void **state)
{
    (void)state;
    fill(ARRAY, &all);
    limit_context_destroyed(CONTEXT, limit_context_mark());
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(2));
    destroy(ARRAY);
}

static void test_a_context_takes_its_own_arrays_along(void **state)
{
    (void)state;
    limit_context_created(OTHER, 0, 0);
    limit_array_created(ARRAY, 0, CONTEXT, false);
    limit_array_created(ARRAY + 8, 0, OTHER, false);
    fill(ARRAY, &all);
    fill(ARRAY + 8, &all);
    limit_primary_destroyed(1, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(4));
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(2));
    limit_context_destroyed(OTHER, limit_context_mark());
}

static void test_memory_not_of_ours_is_nothing(void **state)
{
    (void)state;
    limit_tiles_synchronized(&queue, 0); /* nothing is left of the other tests */
    limit_array_created(ARRAY, 0, CONTEXT, false);
    limit_array_mapped(ARRAY, &all, &queue, 12345);
    limit_array_unmapped(ARRAY, &all, &queue);
    assert_int_equal(limit_sync_mark(), 0);
    destroy(ARRAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_a_handle_that_came_back_meanwhile_keeps_its_memory),
        GATE(test_an_unmapping_after_the_mark_is_not_out),
        GATE(test_an_unmapping_that_may_overtake_waits_for_both_streams),
        GATE(test_a_streams_handle_that_came_back_means_another_stream),
        GATE(test_whatever_is_said_of_a_whole_array_means_all_of_it),
        GATE(test_an_array_of_nobodys_keeps_its_memory_until_it_is_destroyed),
        GATE(test_a_context_takes_its_own_arrays_along),
        GATE(test_memory_not_of_ours_is_nothing),
    };
    return cmocka_run_group_tests_name("limit_tiles", tests, start, NULL);
}
