/* SPDX-License-Identifier: MIT
 *
 * The layout of a ledger file, pinned: a gpulimit-stat of yesterday reads a ledger of today. A row
 * that must change means a new GPULIMIT_REGION_VERSION; new rows go into what is spare.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpulimit/region.h"

// clang-format off
static const struct {
    const char *name;
    size_t offset;
    size_t pinned;
} members[] = {
    {"header.magic", offsetof(struct gpulimit_header, magic), 0},
    {"header.version", offsetof(struct gpulimit_header, version), 8},
    {"header.header_bytes", offsetof(struct gpulimit_header, header_bytes), 12},
    {"header.device_bytes", offsetof(struct gpulimit_header, device_bytes), 16},
    {"header.entry_bytes", offsetof(struct gpulimit_header, entry_bytes), 20},
    {"header.devices_offset", offsetof(struct gpulimit_header, devices_offset), 24},
    {"header.kinds", offsetof(struct gpulimit_header, kinds), 28},
    {"header.pid", offsetof(struct gpulimit_header, pid), 32},
    {"header.uid", offsetof(struct gpulimit_header, uid), 36},
    {"header.pid_namespace", offsetof(struct gpulimit_header, pid_namespace), 40},
    {"header.start_ticks", offsetof(struct gpulimit_header, start_ticks), 48},
    {"header.created_time_ns", offsetof(struct gpulimit_header, created_time_ns), 56},
    {"header.created_mono_ns", offsetof(struct gpulimit_header, created_mono_ns), 64},
    {"header.boot_id", offsetof(struct gpulimit_header, boot_id), 72},
    {"header.library_version", offsetof(struct gpulimit_header, library_version), 112},
    {"header.command", offsetof(struct gpulimit_header, command), 136},
    {"header.notebook", offsetof(struct gpulimit_header, notebook), 1160},
    {"header.slurm_job_id", offsetof(struct gpulimit_header, slurm_job_id), 1416},
    {"header.cgroup", offsetof(struct gpulimit_header, cgroup), 1480},
    {"header.limit_text", offsetof(struct gpulimit_header, limit_text), 1736},
    {"header.group", offsetof(struct gpulimit_header, group), 1864},
    {"header.command_bytes", offsetof(struct gpulimit_header, command_bytes), 1928},
    {"header.count_mode", offsetof(struct gpulimit_header, count_mode), 1932},
    {"header.ended_time_ns", offsetof(struct gpulimit_header, ended_time_ns), 1936},
    {"header.entries_unlisted", offsetof(struct gpulimit_header, entries_unlisted), 1944},
    {"header.extents_used", offsetof(struct gpulimit_header, extents_used), 1952},
    {"header.extents", offsetof(struct gpulimit_header, extents), 1960},
    {"header.unknown_names", offsetof(struct gpulimit_header, unknown_names), 2984},
    {"extent.section", offsetof(struct gpulimit_extent, section), 0},
    {"extent.count", offsetof(struct gpulimit_extent, count), 4},
    {"extent.offset", offsetof(struct gpulimit_extent, offset), 8},
    {"device.sequence", offsetof(struct gpulimit_device, sequence), 0},
    {"device.in_use", offsetof(struct gpulimit_device, in_use), 4},
    {"device.gpu_index", offsetof(struct gpulimit_device, gpu_index), 8},
    {"device.total_bytes", offsetof(struct gpulimit_device, total_bytes), 16},
    {"device.gpu_uuid", offsetof(struct gpulimit_device, gpu_uuid), 24},
    {"device.limit_bytes", offsetof(struct gpulimit_device, limit_bytes), 72},
    {"device.charged_bytes", offsetof(struct gpulimit_device, charged_bytes), 80},
    {"device.requested_bytes", offsetof(struct gpulimit_device, requested_bytes), 88},
    {"device.committed_bytes", offsetof(struct gpulimit_device, committed_bytes), 96},
    {"device.overhead_bytes", offsetof(struct gpulimit_device, overhead_bytes), 104},
    {"device.peak_bytes", offsetof(struct gpulimit_device, peak_bytes), 112},
    {"device.live_allocations", offsetof(struct gpulimit_device, live_allocations), 120},
    {"device.allocations_total", offsetof(struct gpulimit_device, allocations_total), 128},
    {"device.frees_total", offsetof(struct gpulimit_device, frees_total), 136},
    {"device.denials", offsetof(struct gpulimit_device, denials), 144},
    {"device.denials_recovered", offsetof(struct gpulimit_device, denials_recovered), 152},
    {"device.by_kind", offsetof(struct gpulimit_device, by_kind), 160},
    {"device.truth_source", offsetof(struct gpulimit_device, truth_source), 416},
    {"device.hidden_bytes", offsetof(struct gpulimit_device, hidden_bytes), 424},
    {"device.peak_mono_ns", offsetof(struct gpulimit_device, peak_mono_ns), 432},
    {"device.peak_epoch", offsetof(struct gpulimit_device, peak_epoch), 440},
    {"device.peak_overhead_bytes", offsetof(struct gpulimit_device, peak_overhead_bytes), 448},
    {"device.driver_denials", offsetof(struct gpulimit_device, driver_denials), 456},
    {"device.denied_bytes", offsetof(struct gpulimit_device, denied_bytes), 464},
    {"device.denied_mono_ns", offsetof(struct gpulimit_device, denied_mono_ns), 472},
    {"device.largest_bytes", offsetof(struct gpulimit_device, largest_bytes), 480},
    {"device.spare", offsetof(struct gpulimit_device, spare), 488},
    {"entry.sequence", offsetof(struct gpulimit_entry, sequence), 0},
    {"entry.place", offsetof(struct gpulimit_entry, place), 4},
    {"entry.address", offsetof(struct gpulimit_entry, address), 8},
    {"entry.requested_bytes", offsetof(struct gpulimit_entry, requested_bytes), 16},
    {"entry.committed_bytes", offsetof(struct gpulimit_entry, committed_bytes), 24},
    {"entry.born_mono_ns", offsetof(struct gpulimit_entry, born_mono_ns), 32},
    {"entry.thread_id", offsetof(struct gpulimit_entry, thread_id), 40},
    {"entry.site", offsetof(struct gpulimit_entry, site), 44},
    {"entry.owner", offsetof(struct gpulimit_entry, owner), 48},
    {"entry.tag", offsetof(struct gpulimit_entry, tag), 56},
    {"entry.stream", offsetof(struct gpulimit_entry, stream), 60},
    {"module.start", offsetof(struct gpulimit_module, start), 0},
    {"module.end", offsetof(struct gpulimit_module, end), 8},
    {"module.build_id", offsetof(struct gpulimit_module, build_id), 16},
    {"module.build_id_bytes", offsetof(struct gpulimit_module, build_id_bytes), 48},
    {"module.path", offsetof(struct gpulimit_module, path), 52},
    {"frame.kind", offsetof(struct gpulimit_frame, kind), 0},
    {"frame.file", offsetof(struct gpulimit_frame, file), 4},
    {"frame.place", offsetof(struct gpulimit_frame, place), 8},
    {"site.native_count", offsetof(struct gpulimit_site, native_count), 0},
    {"site.python_count", offsetof(struct gpulimit_site, python_count), 2},
    {"site.frames", offsetof(struct gpulimit_site, frames), 16},
    {"tally.sequence", offsetof(struct gpulimit_tally, sequence), 0},
    {"tally.device", offsetof(struct gpulimit_tally, device), 4},
    {"tally.site", offsetof(struct gpulimit_tally, site), 8},
    {"tally.peak_count", offsetof(struct gpulimit_tally, peak_count), 12},
    {"tally.bytes", offsetof(struct gpulimit_tally, bytes), 16},
    {"tally.allocations_total", offsetof(struct gpulimit_tally, allocations_total), 24},
    {"tally.frees_total", offsetof(struct gpulimit_tally, frees_total), 32},
    {"tally.peak_epoch", offsetof(struct gpulimit_tally, peak_epoch), 40},
    {"tally.peak_bytes", offsetof(struct gpulimit_tally, peak_bytes), 48},
    {"tally.spare", offsetof(struct gpulimit_tally, spare), 56},
    {"timeline.sequence", offsetof(struct gpulimit_timeline, sequence), 0},
    {"timeline.device", offsetof(struct gpulimit_timeline, device), 4},
    {"timeline.count", offsetof(struct gpulimit_timeline, count), 8},
    {"timeline.interval_ns", offsetof(struct gpulimit_timeline, interval_ns), 16},
    {"timeline.start_mono_ns", offsetof(struct gpulimit_timeline, start_mono_ns), 24},
    {"timeline.samples", offsetof(struct gpulimit_timeline, samples), 32},
    {"timeline.samples[0].highest_bytes", offsetof(struct gpulimit_timeline, samples[0].highest_bytes),
     32},
    {"timeline.samples[0].lowest_bytes", offsetof(struct gpulimit_timeline, samples[0].lowest_bytes),
     40},
    {"timeline.samples[0].limit_bytes", offsetof(struct gpulimit_timeline, samples[0].limit_bytes),
     48},
    {"timeline.samples[0].denials", offsetof(struct gpulimit_timeline, samples[0].denials),
     56},
    {"timeline.samples[1]", offsetof(struct gpulimit_timeline, samples[1]), 64},
    {"event.number", offsetof(struct gpulimit_event, number), 0},
    {"event.mono_ns", offsetof(struct gpulimit_event, mono_ns), 8},
    {"event.place", offsetof(struct gpulimit_event, place), 16},
    {"event.what", offsetof(struct gpulimit_event, what), 20},
    {"event.thread_id", offsetof(struct gpulimit_event, thread_id), 24},
    {"event.site", offsetof(struct gpulimit_event, site), 28},
    {"event.tag", offsetof(struct gpulimit_event, tag), 32},
    {"event.bytes", offsetof(struct gpulimit_event, bytes), 40},
    {"event.charged_bytes", offsetof(struct gpulimit_event, charged_bytes), 48},
    {"event.address", offsetof(struct gpulimit_event, address), 56},
    {"mark.number", offsetof(struct gpulimit_mark, number), 0},
    {"mark.mono_ns", offsetof(struct gpulimit_mark, mono_ns), 8},
    {"mark.text", offsetof(struct gpulimit_mark, text), 16},
    {"mark.device", offsetof(struct gpulimit_mark, device), 20},
    {"mark.charged_bytes", offsetof(struct gpulimit_mark, charged_bytes), 24},
    {"mark.peak_bytes", offsetof(struct gpulimit_mark, peak_bytes), 32},
    {"mark.requested_bytes", offsetof(struct gpulimit_mark, requested_bytes), 40},
    {"mark.allocations_total", offsetof(struct gpulimit_mark, allocations_total), 48},
    {"mark.live_allocations", offsetof(struct gpulimit_mark, live_allocations), 56},
    {"mark.denials", offsetof(struct gpulimit_mark, denials), 60},
};
// clang-format on

static void test_every_member_lies_where_version_1_has_it(void **state)
{
    (void)state;
    assert_int_equal(GPULIMIT_REGION_VERSION, 1);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (members[i].offset != members[i].pinned)
            fail_msg("%s lies at %zu, not at %zu", members[i].name, members[i].offset,
                     members[i].pinned);
    }
}

static void test_records_are_as_large_as_in_version_1(void **state)
{
    (void)state;
    assert_int_equal(GPULIMIT_HEADER_BYTES_MIN, 2984);
    assert_int_equal(sizeof(struct gpulimit_device), 512);
    assert_int_equal(sizeof(struct gpulimit_entry), 64);
    assert_int_equal(sizeof(struct gpulimit_extent), 16);
    assert_int_equal(sizeof(struct gpulimit_module), 512);
    assert_int_equal(sizeof(struct gpulimit_frame), 16);
    assert_int_equal(sizeof(struct gpulimit_site), 512);
    assert_int_equal(sizeof(struct gpulimit_tally), 64);
    assert_int_equal(sizeof(struct gpulimit_timeline), 8192);
    assert_int_equal(GPULIMIT_TIMELINE_SAMPLES, 255);
    assert_int_equal(sizeof(struct gpulimit_event), 64);
    assert_int_equal(sizeof(struct gpulimit_mark), 64);
    assert_int_equal(GPULIMIT_DEVICES_OFFSET, 4096);
    assert_int_equal(GPULIMIT_EXTENTS_OFFSET, 12288);
}

static void test_kinds_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(GPULIMIT_KIND_NONE, 0);
    assert_int_equal(GPULIMIT_KIND_LINEAR, 1);
    assert_int_equal(GPULIMIT_KIND_MANAGED, 2);
    assert_int_equal(GPULIMIT_KIND_ASYNC, 3);
    assert_int_equal(GPULIMIT_KIND_GRAPH, 4);
    assert_int_equal(GPULIMIT_KIND_VMM, 5);
    assert_int_equal(GPULIMIT_KIND_ARRAY, 6);
    assert_int_equal(GPULIMIT_KIND_IMPORTED, 7);
}

static void test_sections_and_events_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(GPULIMIT_SECTION_APIS, 1);
    assert_int_equal(GPULIMIT_SECTION_ENTRIES, 2);
    assert_int_equal(GPULIMIT_SECTION_MODULES, 3);
    assert_int_equal(GPULIMIT_SECTION_TEXTS, 4);
    assert_int_equal(GPULIMIT_SECTION_SITES, 5);
    assert_int_equal(GPULIMIT_SECTION_TALLIES, 6);
    assert_int_equal(GPULIMIT_SECTION_TIMELINES, 7);
    assert_int_equal(GPULIMIT_SECTION_EVENTS, 8);
    assert_int_equal(GPULIMIT_SECTION_MARKS, 9);
    assert_int_equal(GPULIMIT_EVENT_NONE, 0);
    assert_int_equal(GPULIMIT_EVENT_ALLOCATED, 1);
    assert_int_equal(GPULIMIT_EVENT_FREED, 2);
    assert_int_equal(GPULIMIT_EVENT_REFUSED, 3);
    assert_int_equal(GPULIMIT_EVENT_DRIVER_REFUSED, 4);
}

static void test_a_place_holds_kind_device_and_api(void **state)
{
    (void)state;
    uint32_t place = GPULIMIT_PLACE(GPULIMIT_KIND_VMM, 15, 4711);
    assert_int_equal(GPULIMIT_PLACE_KIND(place), GPULIMIT_KIND_VMM);
    assert_int_equal(GPULIMIT_PLACE_DEVICE(place), 15);
    assert_int_equal(GPULIMIT_PLACE_API(place), 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_lies_where_version_1_has_it),
        cmocka_unit_test(test_records_are_as_large_as_in_version_1),
        cmocka_unit_test(test_kinds_keep_their_numbers),
        cmocka_unit_test(test_sections_and_events_keep_their_numbers),
        cmocka_unit_test(test_a_place_holds_kind_device_and_api),
    };
    return cmocka_run_group_tests_name("region layout", tests, NULL, NULL);
}
