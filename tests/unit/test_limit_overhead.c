/* SPDX-License-Identifier: MIT
 *
 * shim/limit_overhead.c: what settings of a context take.
 */
#include "limit_fixture.h"

#include "limit_contexts.h"
#include "limit_overhead.h"

enum { STACK, HEAP };

static bool set(uint64_t context, unsigned setting, int64_t change)
{
    struct ticket ticket;
    if (!limit_reserve_overhead(&ticket, 0, context, API_cuCtxSetLimit,
                                change > 0 ? (uint64_t)change : 0))
        return false;
    limit_commit_overhead(&ticket, setting, change);
    return true;
}

static void test_a_setting_counts_until_a_lower_one(void **state)
{
    (void)state;
    assert_true(set(CONTEXT, STACK, MIB(600)));
    assert_int_equal(budget_used(0), MIB(600));
    assert_int_equal(totals(0)->overhead_bytes, MIB(600));
    assert_int_equal(totals(0)->charged_bytes, MIB(600));
    assert_false(set(CONTEXT, STACK, MIB(500)));
    assert_true(set(CONTEXT, HEAP, MIB(400)));
    assert_true(set(CONTEXT, STACK, -(int64_t)MIB(600)));
    assert_true(set(CONTEXT, HEAP,
                    -(int64_t)MIB(500))); /* below where we began to count: no less than nothing */
    assert_int_equal(totals(0)->overhead_bytes, 0);
    assert_true(set(CONTEXT, HEAP, MIB(300)));
    assert_int_equal(totals(0)->overhead_bytes, MIB(200));
    assert_true(set(CONTEXT, HEAP, -(int64_t)MIB(200)));
}

static void test_settings_die_with_their_context(void **state)
{
    (void)state;
    limit_context_created(OTHER);
    assert_true(set(OTHER, STACK, MIB(100)));
    assert_true(set(OTHER, HEAP, MIB(50)));
    assert_true(set(CONTEXT, STACK, MIB(10)));
    limit_context_destroyed(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(10));
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(totals(0)->overhead_bytes, 0);
}

static void test_a_setting_that_the_driver_refuses_costs_nothing(void **state)
{
    struct ticket ticket;
    (void)state;
    assert_true(limit_reserve_overhead(&ticket, 0, CONTEXT, API_cuCtxSetLimit, MIB(100)));
    limit_cancel(&ticket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_a_setting_counts_until_a_lower_one),
        GATE(test_settings_die_with_their_context),
        GATE(test_a_setting_that_the_driver_refuses_costs_nothing),
    };
    return cmocka_run_group_tests_name("limit_overhead", tests, start, NULL);
}
