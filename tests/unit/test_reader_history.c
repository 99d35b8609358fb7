/* SPDX-License-Identifier: MIT
 *
 * What the reader makes of history: tallies, timelines, events and marks of good ledgers, of old
 * ones that have none, and of damaged ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpulimit/reader.h"
#include "ledger_fixture.h"

#define MIB FIXTURE_MIB

static struct gpulimit_ledger *test_read_parts(const struct fixture *fixture, unsigned int parts)
{
    char reason[GPULIMIT_READER_REASON_BYTES] = "";
    struct gpulimit_ledger *ledger = NULL;

    fixture_write(fixture, fixture_path);
    if (gpulimit_reader_open(fixture_path, parts, reason, &ledger) != GPULIMIT_READER_OK) {
        fail_msg("%s", reason);
    }
    return ledger;
}

static struct gpulimit_ledger *test_read(const struct fixture *fixture)
{
    return test_read_parts(fixture, GPULIMIT_READER_HISTORY);
}

/* Devices 1 and 3 of the file, which are 0 and 1 in a reader's list. */
static void test_open(struct fixture *fixture)
{
    fixture_open(fixture, 60);
    fixture_add_device(fixture, 1);
    fixture_add_device(fixture, 3);
    fixture_add_sites(fixture);
    fixture_put_python(fixture, fixture_put_site(fixture), "train.py", "main", 3);
}

static void test_what_a_ledger_does_not_have_is_empty(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    ledger = test_read(&fixture);
    assert_int_equal(ledger->tally_count, 0);
    assert_int_equal(ledger->event_count, 0);
    assert_int_equal(ledger->mark_count, 0);
    assert_null(ledger->devices[0].samples);
    assert_int_equal(ledger->devices[0].sample_count, 0);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_history_is_read_only_when_asked_for(void **state)
{
    static const unsigned int parts[] = {GPULIMIT_READER_SUMMARY, GPULIMIT_READER_ENTRIES};
    struct gpulimit_ledger *ledger;
    struct gpulimit_entry *entries;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    entries = fixture_add_entries(&fixture, 1);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0), 1, 1);
    fixture_add_tally(&fixture, 1, 1, 64 * MIB, 3, 2);
    fixture_add_timeline(&fixture, 1, 5, 1000);
    fixture_add_event(&fixture, GPULIMIT_EVENT_FREED, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0),
                      MIB, 3);
    fixture_add_mark(&fixture, 1, "epoch 1", MIB, 3);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        ledger = test_read_parts(&fixture, parts[i]);
        assert_int_equal(ledger->tally_count + ledger->event_count + ledger->mark_count, 0);
        assert_null(ledger->devices[0].samples);
        gpulimit_reader_close(ledger);
    }
    ledger = test_read(&fixture);
    assert_int_equal(ledger->entry_count, 1);
    assert_int_equal(ledger->site_count, FIXTURE_SITES);
    assert_int_equal(ledger->tally_count, 1);
    assert_int_equal(ledger->event_count, 1);
    assert_int_equal(ledger->mark_count, 1);
    assert_int_equal(ledger->devices[0].sample_count, 5);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_devices_tell_of_peaks_and_refusals(void **state)
{
    struct gpulimit_device *device;
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    device = &fixture.devices[3];
    device->peak_mono_ns = 11;
    device->peak_overhead_bytes = 12;
    device->driver_denials = 13;
    device->denied_bytes = 14;
    device->denied_mono_ns = 15;
    device->largest_bytes = 16;
    ledger = test_read_parts(&fixture, GPULIMIT_READER_SUMMARY);
    assert_int_equal(ledger->devices[1].peak_mono_ns, 11);
    assert_int_equal(ledger->devices[1].peak_overhead_bytes, 12);
    assert_int_equal(ledger->devices[1].driver_denials, 13);
    assert_int_equal(ledger->devices[1].denied_bytes, 14);
    assert_int_equal(ledger->devices[1].denied_mono_ns, 15);
    assert_int_equal(ledger->devices[1].largest_bytes, 16);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

/* The device had its peak number 7. One site has changed since, one has not, and one came later. */
static void test_tallies_tell_what_was_live_at_the_peak(void **state)
{
    struct gpulimit_tally *changed;
    struct gpulimit_tally *younger;
    struct gpulimit_tally *same;
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    fixture.devices[3].peak_epoch = 7;
    changed = fixture_add_tally(&fixture, 3, 1, 10 * MIB, 9, 4);
    changed->peak_epoch = 7;
    changed->peak_bytes = 30 * MIB;
    changed->peak_count = 6;
    same = fixture_add_tally(&fixture, 3, 0, 8 * MIB, 5, 1);
    same->peak_epoch = 6;
    same->peak_bytes = 2 * MIB;
    same->peak_count = 1;
    younger = fixture_add_tally(&fixture, 3, 2, MIB, 1, 0);
    younger->peak_epoch = 7;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->tally_count, 3);
    assert_int_equal(ledger->tallies[0].device, 1);
    assert_int_equal(ledger->tallies[0].site, 1);
    assert_int_equal(ledger->tallies[0].bytes, 10 * MIB);
    assert_int_equal(ledger->tallies[0].allocations_total, 9);
    assert_int_equal(ledger->tallies[0].frees_total, 4);
    assert_int_equal(ledger->tallies[0].peak_bytes, 30 * MIB);
    assert_int_equal(ledger->tallies[0].peak_count, 6);
    assert_int_equal(ledger->tallies[1].site, 0);
    assert_int_equal(ledger->tallies[1].peak_bytes, 8 * MIB);
    assert_int_equal(ledger->tallies[1].peak_count, 4);
    assert_int_equal(ledger->tallies[2].peak_bytes, 0);
    assert_int_equal(ledger->tallies[2].peak_count, 0);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_senseless_tallies_are_left_out(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    fixture_add_tally(&fixture, 0, 1, MIB, 1, 0); /* not in use */
    fixture_add_tally(&fixture, GPULIMIT_DEVICES, 1, MIB, 1, 0);
    fixture_add_tally(&fixture, UINT32_MAX, 1, MIB, 1, 0);
    fixture_add_tally(&fixture, 1, 1, 0, 0, 0); /* nothing yet */
    fixture_add_tally(&fixture, 1, FIXTURE_SITES + 1, MIB, 1, 0);
    fixture_add_tally(&fixture, 1, UINT32_MAX, MIB, 3, 5)->sequence = 3; /* torn */
    fixture.devices[1].peak_epoch = 1;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->tally_count, 2);
    assert_int_equal(ledger->tallies[0].site, 0);
    assert_int_equal(ledger->tallies[1].site, 0);
    assert_int_equal(ledger->tallies[1].peak_count, 0);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_timelines_belong_to_their_devices(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    fixture_add_timeline(&fixture, 3, GPULIMIT_TIMELINE_SAMPLES, 2000)->samples[7].denials = 4;
    fixture_add_timeline(&fixture, 1, 2, 1000);
    ledger = test_read(&fixture);
    assert_int_equal(ledger->devices[0].sample_count, 2);
    assert_int_equal(ledger->devices[0].sample_interval_ns, 1000);
    assert_int_equal(ledger->devices[1].sample_count, GPULIMIT_TIMELINE_SAMPLES);
    assert_int_equal(ledger->devices[1].sample_interval_ns, 2000);
    assert_int_equal(ledger->devices[1].sample_start_mono_ns, ledger->created_mono_ns);
    assert_int_equal(ledger->devices[1].samples[7].highest_bytes, 8 * MIB);
    assert_int_equal(ledger->devices[1].samples[7].lowest_bytes, 7 * MIB);
    assert_int_equal(ledger->devices[1].samples[7].limit_bytes, 1024 * MIB);
    assert_int_equal(ledger->devices[1].samples[7].denials, 4);
    assert_int_equal(ledger->devices[1].samples[8].denials, 0);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_senseless_timelines_are_left_out(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    fixture_add_timeline(&fixture, 0, 3, 1000); /* not in use */
    fixture_add_timeline(&fixture, UINT32_MAX, 3, 1000);
    fixture_add_timeline(&fixture, 1, GPULIMIT_TIMELINE_SAMPLES + 1, 1000);
    fixture_add_timeline(&fixture, 1, UINT32_MAX, 1000);
    fixture_add_timeline(&fixture, 1, 3, 0);
    fixture_add_timeline(&fixture, 1, 0, 1000);
    fixture_add_timeline(&fixture, 3, 4, 1000);
    fixture_add_timeline(&fixture, 3, 5, 1000); /* a second one */
    ledger = test_read(&fixture);
    assert_null(ledger->devices[0].samples);
    assert_int_equal(ledger->devices[0].sample_count, 0);
    assert_int_equal(ledger->devices[1].sample_count, 4);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_events_come_oldest_first(void **state)
{
    const struct gpulimit_ledger_event *last;
    struct gpulimit_ledger *ledger;
    struct gpulimit_event *event;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    for (uint32_t i = 0; i < FIXTURE_EVENTS + 4; i++) { /* the ring has turned over */
        event = fixture_add_event(&fixture, GPULIMIT_EVENT_ALLOCATED,
                                  GPULIMIT_PLACE(GPULIMIT_KIND_ASYNC, 3, 1), i * MIB, 50 - i);
    }
    event->what = GPULIMIT_EVENT_REFUSED;
    event->site = 1;
    event->tag = fixture_put_text(&fixture, "epoch 3");
    event->charged_bytes = 900 * MIB;
    event->address = 0x7f00;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->event_count, FIXTURE_EVENTS);
    for (uint32_t i = 0; i < FIXTURE_EVENTS; i++) {
        assert_int_equal(ledger->events[i].number, 5 + i);
        assert_int_equal(ledger->events[i].bytes, (4 + i) * MIB);
        assert_true(i == 0 || ledger->events[i].mono_ns > ledger->events[i - 1].mono_ns);
    }
    last = &ledger->events[FIXTURE_EVENTS - 1];
    assert_int_equal(last->what, GPULIMIT_EVENT_REFUSED);
    assert_int_equal(last->kind, GPULIMIT_KIND_ASYNC);
    assert_int_equal(last->device, 1);
    assert_string_equal(gpulimit_reader_api_name(ledger, last->api), "cuMemAllocAsync");
    assert_int_equal(last->thread_id, 4121);
    assert_int_equal(last->site, 1);
    assert_string_equal(gpulimit_reader_text(ledger, last->tag), "epoch 3");
    assert_int_equal(last->charged_bytes, 900 * MIB);
    assert_int_equal(last->address, 0x7f00);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_senseless_events_are_left_out(void **state)
{
    static const uint32_t places[] = {
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0), /* not in use */
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, GPULIMIT_DEVICES, 0),
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0xff, 0),
        GPULIMIT_PLACE(0xff, 1, 0xffff),            /* this one stays: a kind that nobody knows */
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0), /* being written */
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0), /* of another place */
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0), /* of none */
        GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 1, 0), /* that has not happened */
    };
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        fixture_add_event(&fixture, GPULIMIT_EVENT_FREED, places[i], MIB, 3)->site = UINT32_MAX;
    }
    fixture.events[4].number = 0;
    fixture.events[5].number = 7;
    fixture.events[6].number = UINT64_MAX;
    fixture.events[7].what = GPULIMIT_EVENT_NONE;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->event_count, 1);
    assert_int_equal(ledger->events[0].number, 4);
    assert_int_equal(ledger->events[0].kind, GPULIMIT_KIND_NONE);
    assert_int_equal(ledger->events[0].site, 0);
    assert_string_equal(gpulimit_reader_api_name(ledger, ledger->events[0].api), "");
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_marks_come_oldest_first(void **state)
{
    const struct gpulimit_ledger_mark *last;
    struct gpulimit_ledger *ledger;
    struct gpulimit_mark *mark;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    for (uint32_t i = 0; i < FIXTURE_MARKS + 2; i++) {
        mark = fixture_add_mark(&fixture, i == 4 ? 0 : 3, "epoch", i * MIB, 50 - i);
    }
    mark->text = fixture_put_text(&fixture, "epoch 18");
    mark->peak_bytes = 70 * MIB;
    mark->requested_bytes = 60 * MIB;
    mark->allocations_total = 100;
    mark->live_allocations = 40;
    mark->denials = 2;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->mark_count, FIXTURE_MARKS - 1); /* less that of a device not in use */
    assert_int_equal(ledger->marks[0].number, 3);
    assert_int_equal(ledger->marks[1].number, 4);
    assert_int_equal(ledger->marks[2].number, 6);
    last = &ledger->marks[ledger->mark_count - 1];
    assert_int_equal(last->number, FIXTURE_MARKS + 2);
    assert_int_equal(last->device, 1);
    assert_string_equal(gpulimit_reader_text(ledger, last->text), "epoch 18");
    assert_true(last->mono_ns > ledger->marks[0].mono_ns);
    assert_int_equal(last->charged_bytes, 17 * MIB);
    assert_int_equal(last->peak_bytes, 70 * MIB);
    assert_int_equal(last->requested_bytes, 60 * MIB);
    assert_int_equal(last->allocations_total, 100);
    assert_int_equal(last->live_allocations, 40);
    assert_int_equal(last->denials, 2);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

/* Holes cost a file nothing; of what is beyond the bounds nobody hears. */
static void test_history_beyond_the_bounds_is_left_out(void **state)
{
    static const struct {
        uint32_t section, count;
    } claims[] = {{GPULIMIT_SECTION_TALLIES, GPULIMIT_READER_TALLIES_MAX + 5},
                  {GPULIMIT_SECTION_TIMELINES, 4000},
                  {GPULIMIT_SECTION_EVENTS, GPULIMIT_READER_RING_MAX + 5},
                  {GPULIMIT_SECTION_MARKS, GPULIMIT_READER_RING_MAX + 5}};
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    test_open(&fixture);
    for (uint64_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        fixture.header->extents[fixture.header->extents_used++] =
            (struct gpulimit_extent){claims[i].section, claims[i].count, (i + 1) << 28};
    }
    fixture_write(&fixture, fixture_path);
    assert_int_equal(truncate(fixture_path, 2ll << 30), 0);
    assert_int_equal(gpulimit_reader_open(fixture_path, GPULIMIT_READER_HISTORY, reason, &ledger),
                     GPULIMIT_READER_OK);
    assert_int_equal(ledger->tally_count + ledger->event_count + ledger->mark_count, 0);
    assert_int_equal(ledger->device_count, 2);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_ledger_does_not_have_is_empty),
        cmocka_unit_test(test_history_is_read_only_when_asked_for),
        cmocka_unit_test(test_devices_tell_of_peaks_and_refusals),
        cmocka_unit_test(test_tallies_tell_what_was_live_at_the_peak),
        cmocka_unit_test(test_senseless_tallies_are_left_out),
        cmocka_unit_test(test_timelines_belong_to_their_devices),
        cmocka_unit_test(test_senseless_timelines_are_left_out),
        cmocka_unit_test(test_events_come_oldest_first),
        cmocka_unit_test(test_senseless_events_are_left_out),
        cmocka_unit_test(test_marks_come_oldest_first),
        cmocka_unit_test(test_history_beyond_the_bounds_is_left_out),
    };

    return cmocka_run_group_tests(tests, fixture_make_path, fixture_remove_path);
}
