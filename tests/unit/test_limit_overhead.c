/* SPDX-License-Identifier: MIT
 *
 * shim/limit_overhead.c: what the driver holds outside any allocation, from its own figure.
 */
#include "limit_fixture.h"

#include "limit_contexts.h"
#include "limit_overhead.h"
#include "limit_pools.h"

#include <pthread.h>
#include <unistd.h>

static uint64_t overhead(void)
{
    return totals(0)->overhead_bytes;
}

/* The driver says that it holds so much for the process. */
static void figure(uint64_t bytes)
{
    struct limit_look look;
    limit_look_begin(&look, 0);
    assert_true(limit_look_end(&look, NULL, bytes, false));
}

static void test_it_is_what_the_figure_has_beyond_allocations(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    figure(MIB(618));
    assert_int_equal(overhead(), MIB(518));
    assert_int_equal(budget_used(0), MIB(618));
    assert_int_equal(totals(0)->charged_bytes, MIB(618));
    assert_int_equal(totals(0)->truth_source, GPULIMIT_TRUTH_NVML);
    figure(MIB(700));
    assert_int_equal(overhead(), MIB(600));
    give(BASE);
    figure(MIB(300));
    assert_int_equal(overhead(), MIB(300));
    figure(0);
    assert_int_equal(overhead(), 0);
}

static void test_what_is_under_way_may_be_in_the_figure_or_not(void **state)
{
    struct ticket ticket;
    (void)state;
    figure(MIB(200));
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(100)));
    figure(MIB(200));
    assert_int_equal(overhead(), MIB(200)); /* the driver has not got to it */
    figure(MIB(300));
    assert_int_equal(overhead(), MIB(200)); /* it has */
    figure(MIB(350));
    assert_int_equal(overhead(), MIB(250)); /* it has, and there is more */
    figure(MIB(150));
    assert_int_equal(overhead(), MIB(150)); /* some is gone for certain */
    limit_cancel(&ticket);
    figure(0);
}

static void test_what_came_and_went_meanwhile_widens_the_bounds(void **state)
{
    struct limit_look look;
    (void)state;
    figure(MIB(200));
    limit_look_begin(&look, 0);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    give(BASE);
    assert_true(limit_look_end(&look, NULL, MIB(300), false));
    assert_int_equal(overhead(), MIB(200)); /* the figure may be of the moment between */
    figure(0);
}

static void test_a_look_that_began_earlier_changes_nothing(void **state)
{
    struct limit_look early, late;
    (void)state;
    limit_look_begin(&early, 0);
    limit_look_begin(&late, 0);
    assert_true(limit_look_end(&late, NULL, MIB(100), false));
    assert_false(limit_look_end(&early, NULL, MIB(900), false));
    assert_int_equal(overhead(), MIB(100));
    figure(0);
}

static void test_a_guess_may_be_in_the_figure_for_a_moment(void **state)
{
    struct ticket ticket;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, 4096));
    figure(MIB(1024));
    assert_true(limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, 4096));
    figure(MIB(1026)); /* it got a block of its own, and is about to be taken back */
    assert_int_equal(overhead(), MIB(1022));
    assert_false(limit_commit(&ticket, BASE + MIB(2), 4096));
    limit_give_up(&ticket);
    figure(MIB(1026));
    assert_int_equal(overhead(), MIB(1024));
    give(BASE);
    figure(0);
}

static void test_managed_memory_is_in_no_figure(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_MANAGED, CONTEXT, BASE, MIB(300)));
    assert_int_equal(totals(0)->hidden_bytes, MIB(300)); /* at once */
    figure(MIB(518));
    assert_int_equal(overhead(), MIB(518));
    assert_int_equal(totals(0)->hidden_bytes, MIB(300));
    assert_int_equal(totals(0)->charged_bytes, MIB(818));
    give(BASE);
    figure(0);
}

static void test_a_call_that_fits_is_charged_as_measured(void **state)
{
    struct ticket ticket;
    struct limit_look look, after;
    (void)state;
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 0, API_cuCtxCreate_v2, MIB(400)));
    assert_int_equal(budget_used(0), MIB(400));
    limit_look_begin(&look, 0);
    limit_look_begin(&after, 0);
    assert_true(limit_look_end(&after, &ticket, MIB(518), false));
    assert_true(limit_settle_overhead(&look, &ticket));
    assert_int_equal(budget_used(0), MIB(518));
    assert_int_equal(limit_context_bytes(0), MIB(518));
    figure(0);
}

/* A look that cannot tell the context from an allocation that is under way must not lose it. */
static void test_what_was_reserved_stays_charged_until_a_look_knows_better(void **state)
{
    struct ticket ticket, piece;
    struct limit_look look, stale;
    (void)state;
    limit_look_begin(&stale, 0);
    assert_true(
        limit_reserve(&piece, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(400)));
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 0, API_cuCtxCreate_v2, MIB(518)));
    limit_look_begin(&look, 0);
    limit_take_overhead(&ticket);
    assert_int_equal(budget_used(0), MIB(918));
    assert_false(limit_look_end(&stale, NULL, 0, false)); /* it was asked for before the call */
    figure(MIB(518));
    assert_true(limit_settle_overhead(&look, &ticket));
    assert_int_equal(overhead(), MIB(518));
    assert_int_equal(budget_used(0), MIB(918));
    limit_cancel(&piece);
    figure(MIB(300)); /* it did take less */
    assert_int_equal(budget_used(0), MIB(300));
    figure(0);
}

static void test_a_context_has_a_price_only_by_looks_that_are_exact(void **state)
{
    struct ticket ticket, piece;
    struct limit_look look;
    uint64_t known = limit_context_bytes(0);
    (void)state;
    assert_true(known > MIB(100));
    assert_true(
        limit_reserve(&piece, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(400)));
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 0, API_cuCtxCreate_v2, 0));
    limit_look_begin(&look, 0);
    figure(MIB(500)); /* 100 at least, 500 at most */
    assert_true(limit_settle_overhead(&look, &ticket));
    assert_int_equal(overhead(), MIB(100));
    assert_int_equal(limit_context_bytes(0), known);
    limit_cancel(&piece);
    figure(0);
}

static void test_a_call_that_does_not_fit_is_to_be_undone(void **state)
{
    struct ticket ticket;
    struct limit_look look;
    uint64_t denials = totals(0)->denials;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(800)));
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CODE, 0, API_cuModuleLoadData, 0));
    limit_look_begin(&look, 0);
    figure(MIB(1056));
    assert_false(limit_settle_overhead(&look, &ticket));
    assert_int_equal(ticket.bytes, MIB(256));
    figure(MIB(800));
    limit_give_up(&ticket);
    assert_int_equal(totals(0)->denials, denials + 1);
    assert_int_equal(budget_used(0), MIB(800));
    give(BASE);
}

static void test_what_is_known_not_to_fit_is_refused_before(void **state)
{
    struct ticket ticket;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(800)));
    assert_false(limit_reserve_overhead(&ticket, LIMIT_CODE, 0, API_cuModuleLoadData, MIB(256)));
    figure(MIB(1100));
    assert_false(limit_reserve_overhead(&ticket, LIMIT_STREAM, 0, API_cuStreamCreate, 0));
    give(BASE);
    figure(0);
}

static void test_a_device_that_is_not_named_gets_no_context_even_to_measure_it(void **state)
{
    struct ticket ticket;
    (void)state;
    budget_set_limit(1, 0);
    assert_false(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 1, API_cuCtxCreate_v2, 0));
    budget_set_limit(1, MIB(512));
}

static void test_over_the_limit_nothing_is_given_until_enough_is_freed(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(1000)));
    figure(MIB(1900)); /* a kernel brought its stacks along */
    assert_int_equal(budget_used(0), MIB(1900));
    assert_false(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(2000), MIB(2)));
    give(BASE);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    give(BASE);
    figure(0);
}

static void test_over_the_limit_no_small_piece_is_tried(void **state)
{
    struct ticket ticket;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, 4096));
    figure(MIB(1024));
    assert_true(limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, 4096));
    limit_cancel(&ticket); /* at the limit it may fit into the block that there is */
    figure(MIB(1026));
    assert_false(limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, 4096));
    give(BASE);
    figure(0);
}

static const struct ticket nothing_under_way;

/* A look at the card that sees so much of it in use, before and after what may happen meanwhile. */
static void see(struct limit_look *look)
{
    limit_look_begin(look, 0);
    limit_look_seen(look, &nothing_under_way);
}

static void test_without_a_figure_it_is_what_the_card_has_less(void **state)
{
    struct limit_look before, after;
    (void)state;
    see(&before);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100))); /* of another thread */
    see(&after);
    limit_look_moved(&before, &after, (int64_t)MIB(618), 0);
    assert_int_equal(overhead(), MIB(518));
    assert_int_equal(totals(0)->truth_source, GPULIMIT_TRUTH_DELTA);
    see(&before);
    give(BASE);
    see(&after);
    limit_look_moved(&before, &after, -(int64_t)MIB(618), 0);
    assert_int_equal(overhead(), 0);
}

/* A context of so many bytes has been created while nothing else went on, and destroyed again. */
static void know_contexts(uint64_t bytes)
{
    struct ticket ticket;
    struct limit_look before, after;
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 0, API_cuCtxCreate_v2, 0));
    see(&before);
    see(&after);
    limit_look_moved(&before, &after, (int64_t)bytes, (int64_t)limit_context_bytes(0));
    assert_int_equal(overhead(), bytes);
    assert_true(limit_settle_overhead(&before, &ticket));
    assert_int_equal(limit_context_bytes(0), bytes);
    limit_look_moved(&before, &after, -(int64_t)bytes, -(int64_t)MIB(300));
    assert_int_equal(overhead(), 0);
}

static void test_of_the_card_alone_a_quiet_context_is_what_it_is(void **state)
{
    struct limit_look before, after;
    (void)state;
    know_contexts(MIB(300));
    see(&before);
    see(&after);
    limit_look_moved(&before, &after, (int64_t)MIB(518), (int64_t)limit_context_bytes(0));
    assert_int_equal(overhead(), MIB(518));
    limit_look_moved(&before, &after, -(int64_t)MIB(518), -(int64_t)MIB(300));
    assert_int_equal(overhead(), 0);
}

/* The driver has done both before the first look, and the books hear of it after: the card shows
 * the context alone. And the other way round. */
static void test_what_is_under_way_is_not_put_down_to_a_context(void **state)
{
    struct limit_look before, after;
    struct ticket ticket;
    (void)state;
    know_contexts(MIB(300));
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(40)));
    see(&before);
    assert_true(limit_commit(&ticket, BASE, MIB(40)));
    see(&after);
    limit_look_moved(&before, &after, (int64_t)MIB(300), (int64_t)limit_context_bytes(0));
    assert_int_equal(overhead(), MIB(300));
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(40)));
    see(&before);
    see(&after);
    limit_look_moved(&before, &after, -(int64_t)MIB(260),
                     -(int64_t)MIB(300)); /* it has allocated meanwhile */
    assert_int_equal(overhead(), 0);
    limit_cancel(&ticket);
    give(BASE);
}

static void test_no_context_takes_what_the_card_does_not_leave_it(void **state)
{
    struct limit_look before, after;
    struct ticket ticket;
    (void)state;
    know_contexts(MIB(300));
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(40)));
    see(&before);
    see(&after);
    limit_look_moved(&before, &after, (int64_t)MIB(700), (int64_t)limit_context_bytes(0));
    assert_int_equal(overhead(), MIB(660));
    limit_look_moved(&before, &after, -(int64_t)MIB(700), -(int64_t)MIB(300));
    assert_int_equal(overhead(), 0);
    limit_cancel(&ticket);
}

/* The request for the context itself holds room for it, and is no allocation. */
static void test_a_contexts_own_request_leaves_no_doubt(void **state)
{
    struct limit_look before, after;
    struct ticket ticket;
    (void)state;
    know_contexts(MIB(300));
    assert_true(limit_reserve_overhead(&ticket, LIMIT_CONTEXT, 0, API_cuCtxCreate_v2, MIB(300)));
    limit_look_begin(&before, 0);
    limit_look_seen(&before, &ticket);
    limit_look_begin(&after, 0);
    limit_look_seen(&after, &ticket);
    limit_look_moved(&before, &after, (int64_t)MIB(518), (int64_t)limit_context_bytes(0));
    assert_int_equal(overhead(), MIB(518));
    assert_true(limit_settle_overhead(&before, &ticket));
    limit_look_moved(&before, &after, -(int64_t)MIB(518), -(int64_t)MIB(300));
    assert_int_equal(overhead(), 0);
}

static void test_an_allocation_looks_when_it_is_time(void **state)
{
    unsigned before = looks;
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(2)));
        give(BASE);
    }
    assert_true(looks - before <= 2); /* the first, and one more if 100 ms have passed */
    assert_true(looks > 0);
}

static void late_figure(uint64_t bytes)
{
    struct limit_look look;
    limit_look_begin(&look, 0);
    assert_true(limit_look_end(&look, NULL, bytes, true));
}

static void *be_a_thread(void *argument)
{
    limit_note_thread();
    return argument;
}

static void test_with_threads_it_falls_only_if_it_stays_low(void **state)
{
    pthread_t thread;
    (void)state;
    limit_note_thread();
    assert_int_equal(pthread_create(&thread, NULL, be_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    late_figure(MIB(618));
    late_figure(MIB(604)); /* 14 MiB are back on the device, and not in the books yet */
    assert_int_equal(overhead(), MIB(518));
    late_figure(MIB(618));
    usleep(30000);
    late_figure(MIB(604)); /* another 14 MiB: the first are long forgotten */
    assert_int_equal(overhead(), MIB(518));
    usleep(30000);
    late_figure(MIB(600));
    assert_int_equal(overhead(), MIB(504)); /* the most that was left in all that time */
    figure(MIB(500));
    assert_int_equal(overhead(), MIB(400)); /* after a call that was to lower it, at once */
    give(BASE);
    figure(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_it_is_what_the_figure_has_beyond_allocations),
        GATE(test_what_is_under_way_may_be_in_the_figure_or_not),
        GATE(test_what_came_and_went_meanwhile_widens_the_bounds),
        GATE(test_a_look_that_began_earlier_changes_nothing),
        GATE(test_a_guess_may_be_in_the_figure_for_a_moment),
        GATE(test_managed_memory_is_in_no_figure),
        GATE(test_a_call_that_fits_is_charged_as_measured),
        GATE(test_what_was_reserved_stays_charged_until_a_look_knows_better),
        GATE(test_a_context_has_a_price_only_by_looks_that_are_exact),
        GATE(test_a_call_that_does_not_fit_is_to_be_undone),
        GATE(test_what_is_known_not_to_fit_is_refused_before),
        GATE(test_a_device_that_is_not_named_gets_no_context_even_to_measure_it),
        GATE(test_over_the_limit_nothing_is_given_until_enough_is_freed),
        GATE(test_over_the_limit_no_small_piece_is_tried),
        GATE(test_without_a_figure_it_is_what_the_card_has_less),
        GATE(test_of_the_card_alone_a_quiet_context_is_what_it_is),
        GATE(test_what_is_under_way_is_not_put_down_to_a_context),
        GATE(test_no_context_takes_what_the_card_does_not_leave_it),
        GATE(test_a_contexts_own_request_leaves_no_doubt),
        GATE(test_an_allocation_looks_when_it_is_time),
        /* Last: from here on the process has threads. */
        GATE(test_with_threads_it_falls_only_if_it_stays_low),
    };
    return cmocka_run_group_tests_name("limit_overhead", tests, start, NULL);
}
