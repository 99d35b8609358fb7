/* SPDX-License-Identifier: MIT
 *
 * shim/limit.c, limit_vmm.c and limit_contexts.c: the gate. What is held, what is refused, and that
 * everything comes back.
 */
#include "limit_fixture.h"

#include "books.h"
#include "limit_contexts.h"
#include "limit_later.h"
#include "limit_vmm.h"

#include <pthread.h>

static void test_linear_memory_is_charged_by_blocks(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, 1000));
    assert_int_equal(budget_used(0), MIB(2));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + 1024, 1000));
    assert_int_equal(budget_used(0), MIB(2));
    assert_int_equal(totals(0)->requested_bytes, 2000);
    assert_int_equal(totals(0)->committed_bytes, MIB(2));
    assert_int_equal(totals(0)->by_kind[GPULIMIT_KIND_LINEAR].count, 2);
    give(BASE);
    assert_int_equal(budget_used(0), MIB(2));
    give(BASE + 1024);
}

static void test_over_the_limit_is_refused_counted_and_costs_nothing(void **state)
{
    uint64_t denials = totals(0)->denials;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(1000)));
    assert_false(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(1000), MIB(25)));
    assert_int_equal(budget_used(0), MIB(1000));
    assert_int_equal(totals(0)->denials, denials + 1);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(1000), MIB(24)));
    give(BASE);
    give(BASE + MIB(1000));
}

static void test_a_refusal_is_recovered_by_as_much_on_the_same_thread(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(1000)));
    assert_false(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(1000), MIB(100)));
    uint64_t recovered = totals(0)->denials_recovered;
    give(BASE);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(50)));
    assert_int_equal(totals(0)->denials_recovered, recovered);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(50), MIB(100)));
    assert_int_equal(totals(0)->denials_recovered, recovered + 1);
    give(BASE);
    give(BASE + MIB(50));
}

static void test_a_small_piece_fits_a_begun_block_of_a_full_budget(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(1022)));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(1022), 4096));
    assert_int_equal(budget_used(0), MIB(1024));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(1022) + 4096, 4096));
    /* The driver opened a new block for this one: to be undone. */
    assert_false(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(2000), MIB(1)));
    assert_int_equal(budget_used(0), MIB(1024));
    give(BASE);
    give(BASE + MIB(1022));
    give(BASE + MIB(1022) + 4096);
}

static void test_a_cancelled_request_gives_back_what_it_held(void **state)
{
    struct ticket ticket;
    (void)state;
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(500)));
    assert_int_equal(budget_used(0), MIB(500));
    limit_cancel(&ticket);
    assert_true(
        limit_reserve(&ticket, GPULIMIT_KIND_ASYNC, 0, POOL, API_cuMemAllocAsync, MIB(500)));
    assert_int_equal(budget_used(0), MIB(512));
    limit_cancel(&ticket);
}

static void test_a_free_that_the_driver_refuses_puts_the_entry_back(void **state)
{
    struct removal removal;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    limit_detach(&removal, BASE);
    assert_int_equal(budget_used(0), MIB(100));
    limit_restore(&removal);
    assert_int_equal(budget_used(0), MIB(100));
    give(BASE);
}

static void test_a_restored_piece_pays_for_the_block_that_others_left_meanwhile(void **state)
{
    struct removal removal;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, 4096));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + 4096, 4096));
    limit_detach(&removal, BASE);
    give(BASE + 4096);
    assert_int_equal(budget_used(0), 0);
    limit_restore(&removal);
    assert_int_equal(budget_used(0), MIB(2));
    limit_detach(&removal, BASE);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + 4096, 4096));
    limit_restore(&removal);
    assert_int_equal(budget_used(0), MIB(2));
    give(BASE);
    give(BASE + 4096);
}

static void test_unknown_addresses_are_freed_without_a_trace(void **state)
{
    (void)state;
    give(0x1234);
    give(0x1234);
}

static void test_an_address_that_comes_back_during_its_free_is_two_entries(void **state)
{
    struct removal removal;
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    limit_detach(&removal, BASE);
    /* The driver has freed; before we say so, another thread is handed the same address. */
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(10)));
    limit_release(&removal);
    assert_int_equal(totals(0)->live_allocations, 1);
    assert_int_equal(budget_used(0), MIB(10));
    give(BASE);
}

static void test_an_address_handed_out_twice_was_freed_behind_our_back(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(100)));
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(10)));
    assert_int_equal(totals(0)->live_allocations, 1);
    assert_int_equal(budget_used(0), MIB(10));
    give(BASE);
}

static void test_vmm_memory_stays_charged_until_handle_and_mapping_are_gone(void **state)
{
    uint32_t object;
    (void)state;
    assert_true(take(GPULIMIT_KIND_VMM, 0, 55, MIB(64)));
    limit_mapped(55, BASE, MIB(64));
    limit_handle_detach(55, &object);
    limit_handle_release(object);
    assert_int_equal(budget_used(0), MIB(64));
    /* The driver hands the value of the released handle out again. */
    assert_true(take(GPULIMIT_KIND_VMM, 0, 55, MIB(2)));
    assert_int_equal(budget_used(0), MIB(66));
    limit_unmapped(BASE, MIB(64));
    assert_int_equal(budget_used(0), MIB(2));
    limit_handle_detach(55, &object);
    limit_handle_restore(55, object);
    assert_int_equal(budget_used(0), MIB(2));
    limit_handle_detach(55, &object);
    limit_handle_release(object);
}

static void test_imported_memory_is_listed_and_free(void **state)
{
    uint32_t object;
    (void)state;
    limit_handle_imported(77, 0, API_cuMemImportFromShareableHandle);
    assert_int_equal(totals(0)->by_kind[GPULIMIT_KIND_IMPORTED].count, 1);
    assert_int_equal(budget_used(0), 0);
    limit_handle_detach(77, &object);
    limit_handle_release(object);
}

static void test_a_context_takes_its_own_memory_along(void **state)
{
    uint32_t object;
    (void)state;
    limit_context_created(OTHER, 0, 0);
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(10)));
    assert_true(take(GPULIMIT_KIND_LINEAR, OTHER, BASE + MIB(10), MIB(20)));
    assert_true(take(GPULIMIT_KIND_MANAGED, OTHER, BASE + MIB(30), MIB(40)));
    assert_true(take(GPULIMIT_KIND_VMM, 0, 5, MIB(80)));
    limit_context_destroyed(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(90));
    /* What a primary context owns: all that is nobody else's, but not cuMemCreate's memory. */
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(80));
    limit_handle_detach(5, &object);
    limit_handle_release(object);
}

static void test_a_context_goes_with_its_last_user(void **state)
{
    (void)state;
    limit_context_created(OTHER, 0, 0);
    limit_context_attached(OTHER);
    assert_true(take(GPULIMIT_KIND_LINEAR, OTHER, BASE, MIB(10)));
    limit_context_detached(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), MIB(10));
    limit_context_detached(OTHER, limit_context_mark());
    assert_int_equal(budget_used(0), 0);
}

static void test_what_comes_after_the_mark_outlives_the_primary_context(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(10)));
    uint64_t mark = limit_context_mark();
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE + MIB(10), MIB(20)));
    limit_primary_destroyed(0, mark);
    assert_int_equal(budget_used(0), MIB(20));
    give(BASE + MIB(10));
}

static void test_views_are_the_smaller_of_limit_and_card(void **state)
{
    uint64_t total = MIB(8192), free = MIB(7000);
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE, MIB(1000)));
    limit_view(0, &total, &free);
    assert_int_equal(total, MIB(1024));
    assert_int_equal(free, MIB(24));
    free = MIB(10);
    limit_view(0, &total, &free);
    assert_int_equal(free, MIB(10)); /* the card is really full */
    total = MIB(512), free = MIB(500);
    limit_view(1, &total, &free);
    assert_int_equal(total, MIB(512)); /* a limit above the card is not shown as memory */
    give(BASE);
}

static void test_sizes_near_2_to_the_64_are_refused(void **state)
{
    static const enum gpulimit_kind kinds[] = {GPULIMIT_KIND_LINEAR, GPULIMIT_KIND_MANAGED,
                                               GPULIMIT_KIND_ASYNC, GPULIMIT_KIND_VMM};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_false(take(kinds[i], POOL, BASE, UINT64_MAX));
        assert_false(take(kinds[i], POOL, BASE, UINT64_MAX - MIB(1)));
    }
}

static atomic_uint_least64_t next_address = BASE;
static atomic_uint successes;

static void *take_100_mib(void *argument)
{
    uint64_t address = atomic_fetch_add(&next_address, MIB(100));
    *(uint64_t *)argument = 0;
    if (take(GPULIMIT_KIND_LINEAR, CONTEXT, address, MIB(100))) {
        *(uint64_t *)argument = address;
        atomic_fetch_add(&successes, 1);
    }
    return NULL;
}

static void test_of_8_threads_that_ask_for_100_mib_of_250_exactly_2_get_them(void **state)
{
    (void)state;
    assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, BASE - MIB(1024), MIB(774)));
    for (unsigned round = 0; round < 100; round++) {
        pthread_t threads[8];
        uint64_t addresses[8];
        atomic_store(&successes, 0);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_100_mib, &addresses[i]), 0);
        for (unsigned i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&successes), 2);
        for (unsigned i = 0; i < 8; i++) {
            if (addresses[i])
                give(addresses[i]);
        }
    }
    give(BASE - MIB(1024));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_linear_memory_is_charged_by_blocks),
        GATE(test_over_the_limit_is_refused_counted_and_costs_nothing),
        GATE(test_a_refusal_is_recovered_by_as_much_on_the_same_thread),
        GATE(test_a_small_piece_fits_a_begun_block_of_a_full_budget),
        GATE(test_a_cancelled_request_gives_back_what_it_held),
        GATE(test_a_free_that_the_driver_refuses_puts_the_entry_back),
        GATE(test_a_restored_piece_pays_for_the_block_that_others_left_meanwhile),
        GATE(test_unknown_addresses_are_freed_without_a_trace),
        GATE(test_an_address_that_comes_back_during_its_free_is_two_entries),
        GATE(test_an_address_handed_out_twice_was_freed_behind_our_back),
        GATE(test_vmm_memory_stays_charged_until_handle_and_mapping_are_gone),
        GATE(test_imported_memory_is_listed_and_free),
        GATE(test_a_context_takes_its_own_memory_along),
        GATE(test_a_context_goes_with_its_last_user),
        GATE(test_what_comes_after_the_mark_outlives_the_primary_context),
        GATE(test_views_are_the_smaller_of_limit_and_card),
        GATE(test_sizes_near_2_to_the_64_are_refused),
        GATE(test_of_8_threads_that_ask_for_100_mib_of_250_exactly_2_get_them),
    };
    return cmocka_run_group_tests_name("limit", tests, start, NULL);
}
