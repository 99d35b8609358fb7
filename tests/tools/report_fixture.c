/* SPDX-License-Identifier: MIT
 *
 * The ledger of a run with a history, for the tests of report and check.
 */
#include "report_fixture.h"

#include <string.h>

#define FIXTURE_SECOND UINT64_C(1000000000)

static const uint64_t fixture_start_ns = 1796044621 * FIXTURE_SECOND; /* 2026-11-30 13:17:01 */

static void report_fixture_fill_device(struct fixture *fixture)
{
    struct gpulimit_device *device = fixture_add_device(fixture, 0);

    device->charged_bytes = 740 * FIXTURE_MIB;
    device->requested_bytes = 639 * FIXTURE_MIB;
    device->committed_bytes = 640 * FIXTURE_MIB;
    device->overhead_bytes = 100 * FIXTURE_MIB;
    device->peak_bytes = 1000 * FIXTURE_MIB;
    device->peak_mono_ns = fixture->header->created_mono_ns + 12345 * (FIXTURE_SECOND / 1000);
    device->peak_epoch = 9;
    device->peak_overhead_bytes = 100 * FIXTURE_MIB;
    device->live_allocations = 6;
    device->allocations_total = 1234;
    device->frees_total = 1228;
    device->denials = 3;
    device->denials_recovered = 2;
    device->denied_bytes = 1536 * FIXTURE_MIB;
    device->driver_denials = 1;
    device->largest_bytes = 512 * FIXTURE_MIB;
}

static void report_fixture_add_site(struct fixture *fixture, uint32_t line, const char *function,
                                    uint32_t caller, unsigned int peak_mib, unsigned int live_mib)
{
    uint32_t site = fixture_put_site(fixture);
    struct gpulimit_tally *tally =
        fixture_add_tally(fixture, 0, site, live_mib * FIXTURE_MIB, 600, live_mib > 0 ? 597 : 600);

    fixture_put_python(fixture, site, "/srv/nets/model.py", function, line);
    fixture_put_python(fixture, site, "/srv/nets/train.py", "<module>", caller);
    tally->peak_epoch = 9;
    tally->peak_bytes = peak_mib * FIXTURE_MIB;
    tally->peak_count = 3;
}

static void report_fixture_add_native(struct fixture *fixture)
{
    uint32_t module = fixture_put_module(fixture, "/srv/solver");
    uint32_t site = fixture_put_site(fixture);
    struct gpulimit_tally *tally = fixture_add_tally(fixture, 0, site, 0, 34, 34);

    fixture_put_native(fixture, site, module, 0x4010);
    tally->peak_epoch = 9;
    tally->peak_bytes = 32 * FIXTURE_MIB;
    tally->peak_count = 1;
}

static void report_fixture_add_history(struct fixture *fixture)
{
    struct gpulimit_timeline *timeline = fixture_add_timeline(fixture, 0, 8, 16 * FIXTURE_SECOND);
    struct gpulimit_mark *mark = fixture_add_mark(fixture, 0, "epoch 1", 700 * FIXTURE_MIB, 0);

    for (uint32_t i = 0; i < 8; i++) {
        timeline->samples[i].highest_bytes = (i == 0 ? 1000 : 128 * (i - 1)) * FIXTURE_MIB;
        timeline->samples[i].denials = i == 0 ? 3 : 0;
    }
    mark->mono_ns = fixture->header->created_mono_ns + 20 * FIXTURE_SECOND;
    mark->peak_bytes = 1000 * FIXTURE_MIB;
    mark->live_allocations = 8;
    mark->allocations_total = 500;
    mark->denials = 3;
    mark = fixture_add_mark(fixture, 0, "epoch 2", 740 * FIXTURE_MIB, 0);
    mark->mono_ns = fixture->header->created_mono_ns + 105 * FIXTURE_SECOND;
    mark->peak_bytes = 768 * FIXTURE_MIB;
    mark->live_allocations = 6;
    mark->allocations_total = 1234;
    mark->denials = 3;
}

void report_fixture_open(struct fixture *fixture)
{
    fixture_open(fixture, 125);
    fixture->header->created_time_ns = fixture_start_ns;
    fixture->header->ended_time_ns = fixture_start_ns + 125 * FIXTURE_SECOND;
    strcpy(fixture->header->limit_text, "1024");
    report_fixture_fill_device(fixture);
    fixture_add_sites(fixture);
    report_fixture_add_site(fixture, 31, "load_state_dict", 12, 600, 600);
    report_fixture_add_site(fixture, 58, "forward", 14, 128, 0);
    report_fixture_add_site(fixture, 31, "load_state_dict", 14, 40, 40);
    report_fixture_add_native(fixture);
    report_fixture_add_history(fixture);
}
