/* SPDX-License-Identifier: MIT
 *
 * shim/limit_promises.c: what settings let kernels take later.
 */
#include "limit_fixture.h"

#include "limit_contexts.h"
#include "limit_overhead.h"
#include "limit_promises.h"

enum { HEAP, FIFO };

static void figure(uint64_t bytes, bool is_late)
{
    struct limit_look look;
    limit_look_begin(&look, 0);
    assert_true(limit_look_end(&look, NULL, bytes, is_late));
}

static void test_a_setting_counts_until_a_lower_one(void **state)
{
    (void)state;
    limit_promise(0, CONTEXT, HEAP, MIB(600));
    assert_int_equal(budget_used(0), MIB(600));
    assert_int_equal(totals(0)->overhead_bytes, MIB(600));
    assert_int_equal(totals(0)->hidden_bytes, MIB(600));
    assert_false(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(500)));
    limit_promise(0, CONTEXT, FIFO, MIB(400));
    limit_promise(0, CONTEXT, HEAP, -(int64_t)MIB(600));
    /* below where we began to count: no less than nothing */
    limit_promise(0, CONTEXT, FIFO, -(int64_t)MIB(500));
    assert_int_equal(totals(0)->overhead_bytes, 0);
    limit_promise(0, CONTEXT, FIFO, MIB(300));
    assert_int_equal(totals(0)->overhead_bytes, MIB(200));
    limit_promise(0, CONTEXT, FIFO, -(int64_t)MIB(200));
}

static void test_settings_die_with_their_context(void **state)
{
    (void)state;
    limit_context_created(OTHER, 0, 0);
    limit_promise(0, OTHER, HEAP, MIB(100));
    limit_promise(0, OTHER, FIFO, MIB(50));
    limit_promise(0, CONTEXT, HEAP, MIB(10));
    limit_context_destroyed(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(10));
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(totals(0)->overhead_bytes, 0);
}

static void test_what_a_kernel_has_taken_is_not_counted_twice(void **state)
{
    (void)state;
    figure(MIB(100), false);
    limit_promise(0, CONTEXT, HEAP, MIB(300));
    assert_int_equal(totals(0)->overhead_bytes, MIB(400));
    figure(MIB(402), true);
    assert_int_equal(totals(0)->overhead_bytes, MIB(402));
    assert_int_equal(totals(0)->hidden_bytes, 0);
    limit_primary_destroyed(0, limit_context_mark());
    figure(0, false);
}

/* They come as a whole, so less than that is code that a kernel has brought along. */
static void test_of_two_settings_that_is_taken_which_fits(void **state)
{
    (void)state;
    limit_promise(0, CONTEXT, HEAP, MIB(300));
    limit_promise(0, CONTEXT, FIFO, MIB(100));
    figure(MIB(50), true);
    assert_int_equal(totals(0)->hidden_bytes, MIB(400));
    figure(MIB(152), true);
    assert_int_equal(totals(0)->overhead_bytes, MIB(452));
    assert_int_equal(totals(0)->hidden_bytes, MIB(300));
    figure(MIB(452), true);
    assert_int_equal(totals(0)->overhead_bytes, MIB(452));
    assert_int_equal(totals(0)->hidden_bytes, 0);
    limit_primary_destroyed(0, limit_context_mark());
    figure(0, false);
}

static void test_settings_of_another_device_stay_promised(void **state)
{
    (void)state;
    limit_promise(1, OTHER, HEAP, MIB(300));
    figure(MIB(300), true);
    assert_int_equal(totals(1)->hidden_bytes, MIB(300));
    limit_primary_destroyed(1, limit_context_mark());
    figure(0, false);
}

static void test_what_something_else_took_is_no_heap(void **state)
{
    (void)state;
    limit_promise(0, CONTEXT, HEAP, MIB(300));
    figure(MIB(518), false);
    assert_int_equal(totals(0)->overhead_bytes, MIB(818));
    limit_primary_destroyed(0, limit_context_mark());
    figure(0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_a_setting_counts_until_a_lower_one),
        GATE(test_settings_die_with_their_context),
        GATE(test_what_a_kernel_has_taken_is_not_counted_twice),
        GATE(test_of_two_settings_that_is_taken_which_fits),
        GATE(test_settings_of_another_device_stay_promised),
        GATE(test_what_something_else_took_is_no_heap),
    };
    return cmocka_run_group_tests_name("limit_promises", tests, start, NULL);
}
