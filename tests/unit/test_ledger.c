/* SPDX-License-Identifier: MIT
 *
 * shim/ledger.c: entries and counters, by themselves.
 */
#include "unit.h"

#include "ledger.h"

#include <stdlib.h>

static struct ledger ledger;

static int clear(void **state)
{
    (void)state;
    ledger_clear(&ledger);
    ledger.count_mode = GPULIMIT_COUNT_PROCESS;
    return 0;
}

static uint32_t insert(uint64_t address, uint64_t bytes)
{
    struct ledger_entry entry = {.address = address,
                                 .requested_bytes = bytes,
                                 .committed_bytes = bytes,
                                 .kind = GPULIMIT_KIND_LINEAR};
    uint32_t stale;
    uint32_t number = ledger_insert(&ledger, &entry, &stale);
    assert_int_equal(stale, LEDGER_NONE);
    ledger_commit(&ledger, 0, GPULIMIT_KIND_LINEAR, (int64_t)bytes);
    ledger_publish(&ledger, 0, GPULIMIT_KIND_LINEAR);
    return number;
}

static void remove_at(uint64_t address)
{
    uint32_t number = ledger_find(&ledger, address);
    int64_t bytes = (int64_t)ledger_at(&ledger, number)->committed_bytes;
    ledger_remove(&ledger, number);
    ledger_commit(&ledger, 0, GPULIMIT_KIND_LINEAR, -bytes);
    ledger_publish(&ledger, 0, GPULIMIT_KIND_LINEAR);
}

static void test_counters_follow_and_end_at_zero(void **state)
{
    const struct region_totals *totals = &ledger.totals[0];
    (void)state;
    insert(0x1000, 100);
    insert(0x2000, 50);
    assert_int_equal(totals->charged_bytes, 150);
    assert_int_equal(totals->live_allocations, 2);
    remove_at(0x1000);
    remove_at(0x2000);
    assert_int_equal(totals->charged_bytes, 0);
    assert_int_equal(totals->requested_bytes, 0);
    assert_int_equal(totals->live_allocations, 0);
    assert_int_equal(totals->allocations_total, 2);
    assert_int_equal(totals->frees_total, 2);
    assert_int_equal(totals->peak_bytes, 150);
    assert_int_equal(totals->by_kind[GPULIMIT_KIND_LINEAR].bytes, 0);
}

static void test_charged_is_what_was_requested_when_allocations_are_counted(void **state)
{
    struct ledger_entry entry = {
        .address = 0x1000, .requested_bytes = 100, .kind = GPULIMIT_KIND_LINEAR};
    uint32_t stale;
    (void)state;
    ledger.count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    uint32_t number = ledger_insert(&ledger, &entry, &stale);
    ledger_commit(&ledger, 0, GPULIMIT_KIND_LINEAR, (int64_t)MIB(2));
    ledger_publish(&ledger, 0, GPULIMIT_KIND_LINEAR);
    assert_int_equal(ledger.totals[0].charged_bytes, 100);
    assert_int_equal(ledger.totals[0].committed_bytes, MIB(2));
    assert_int_equal(ledger.totals[0].by_kind[GPULIMIT_KIND_LINEAR].bytes, 100);
    ledger_remove(&ledger, number);
    ledger_publish(&ledger, 0, GPULIMIT_KIND_LINEAR);
    assert_int_equal(ledger.totals[0].charged_bytes, 0);
}

static void test_a_taken_address_makes_the_old_entry_stale(void **state)
{
    struct ledger_entry entry = {
        .address = 0x1000, .requested_bytes = 1, .kind = GPULIMIT_KIND_LINEAR};
    uint32_t stale;
    (void)state;
    uint32_t old = insert(0x1000, 100);
    uint32_t number = ledger_insert(&ledger, &entry, &stale);
    assert_int_equal(stale, old);
    ledger_remove(&ledger, stale);
    assert_int_equal(ledger_find(&ledger, 0x1000), number);
}

static void test_vmm_handles_and_addresses_do_not_meet(void **state)
{
    struct ledger_entry entry = {
        .address = 0x1000, .requested_bytes = 1, .kind = GPULIMIT_KIND_VMM, .is_handle = true};
    uint32_t stale;
    (void)state;
    uint32_t linear = insert(0x1000, 100);
    ledger_insert(&ledger, &entry, &stale);
    assert_int_equal(stale, LEDGER_NONE);
    assert_int_equal(ledger_find(&ledger, 0x1000), linear);
}

static void test_places_are_used_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        insert(0x1000, 100);
        remove_at(0x1000);
    }
    assert_int_equal(ledger.used, 1);
}

static void test_a_million_live_entries_are_found(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 1000000; i++)
        insert(i << 9, 512);
    for (uint64_t i = 1; i <= 1000000; i++)
        remove_at(i << 9);
    assert_int_equal(ledger.totals[0].charged_bytes, 0);
    assert_int_equal(ledger.totals[0].peak_bytes, 512000000);
}

static void test_the_peak_has_its_time_its_overhead_and_its_holders(void **state)
{
    const struct region_totals *totals = &ledger.totals[0];
    (void)state;
    ledger.totals[0].overhead_bytes = 30;
    insert(0x1000, 100);
    uint64_t epoch = totals->peak_epoch;
    assert_true(totals->peak_mono_ns > 0);
    assert_int_equal(totals->peak_overhead_bytes, 30);
    remove_at(0x1000);
    ledger.totals[0].overhead_bytes = 60;
    insert(0x2000, 10);
    assert_int_equal(totals->peak_epoch, epoch);
    assert_int_equal(totals->peak_overhead_bytes, 30);
    assert_int_equal(tally_peak_bytes(&ledger.tallies.list[1], epoch), 100);
    assert_int_equal(ledger.tallies.list[1].bytes, 10);
    assert_int_equal(totals->largest_bytes, 100);
}

static void test_the_last_events_but_small_ones_are_kept(void **state)
{
    struct ledger_entry refused = {.requested_bytes = 77, .kind = GPULIMIT_KIND_VMM, .api = 3};
    struct gpulimit_event events[HISTORY_RECENT];
    (void)state;
    for (uint64_t i = 1; i <= 2 * HISTORY_RECENT; i++)
        ledger_note(&ledger, GPULIMIT_EVENT_ALLOCATED, ledger_at(&ledger, insert(i << 24, MIB(1))));
    ledger_note(&ledger, GPULIMIT_EVENT_ALLOCATED, ledger_at(&ledger, insert(0x1000, MIB(1) - 1)));
    ledger_note(&ledger, GPULIMIT_EVENT_REFUSED, &refused);
    assert_int_equal(history_copy_events(&ledger.history, events, HISTORY_RECENT), HISTORY_RECENT);
    assert_int_equal(events[0].number, 2 * HISTORY_RECENT + 1);
    assert_int_equal(events[0].what, GPULIMIT_EVENT_REFUSED);
    assert_int_equal(events[0].bytes, 77);
    assert_int_equal(events[0].place, GPULIMIT_PLACE(GPULIMIT_KIND_VMM, 0, 3));
    assert_int_equal(events[1].address, (uint64_t)(2 * HISTORY_RECENT) << 24);
    assert_int_equal(events[HISTORY_RECENT - 1].number, HISTORY_RECENT + 2);
    assert_int_equal(history_copy_events(&ledger.history, events, 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_counters_follow_and_end_at_zero, clear),
        cmocka_unit_test_setup(test_charged_is_what_was_requested_when_allocations_are_counted,
                               clear),
        cmocka_unit_test_setup(test_a_taken_address_makes_the_old_entry_stale, clear),
        cmocka_unit_test_setup(test_vmm_handles_and_addresses_do_not_meet, clear),
        cmocka_unit_test_setup(test_places_are_used_again, clear),
        cmocka_unit_test_setup(test_the_peak_has_its_time_its_overhead_and_its_holders, clear),
        cmocka_unit_test_setup(test_the_last_events_but_small_ones_are_kept, clear),
        cmocka_unit_test_setup(test_a_million_live_entries_are_found, clear),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
