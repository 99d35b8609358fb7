/* SPDX-License-Identifier: MIT
 *
 * The sections of a ledger file that say how things came to be as they are: tallies of call sites,
 * and timelines. Events and marks, which are rings, are reader_rings.c's. All of it is detail: what
 * is wrong in a record makes that one unknown, and the ledger no worse.
 */
#include <stdlib.h>

#include "reader_parts.h"

bool reader_has_new_peak(struct reader *reader)
{
    struct gpulimit_device record;
    struct gpulimit_device scratch[2];

    for (uint32_t number = 0; number < GPULIMIT_DEVICES; number++) {
        uint64_t offset = GPULIMIT_DEVICES_OFFSET + number * sizeof(record);

        if (records_read(reader->fd, offset, sizeof(record), &reader->patience, scratch, &record) ==
                RECORDS_SETTLED &&
            record.peak_epoch != reader->peak_epochs[number]) {
            return true;
        }
    }
    return false;
}

/* What was live at the device's peak. If the site's own record is of an earlier one, nothing has
 * changed here since. */
static void reader_find_peak(const struct gpulimit_tally *record, uint64_t epoch,
                             struct gpulimit_ledger_tally *tally)
{
    if (record->peak_epoch >= epoch) {
        tally->peak_bytes = record->peak_bytes;
        tally->peak_count = record->peak_count;
    } else {
        tally->peak_bytes = tally->bytes;
        tally->peak_count = tally->allocations_total > tally->frees_total
                                ? tally->allocations_total - tally->frees_total
                                : 0;
    }
}

/* Of a tally that its writer left half-written, or goes on writing, each figure is still one that
 * there was. */
static enum gpulimit_reader_status reader_take_tally(struct reader *reader, const void *bytes,
                                                     enum records_outcome outcome,
                                                     struct gpulimit_ledger *ledger)
{
    const struct gpulimit_tally *record = bytes;
    uint32_t device =
        record->device < GPULIMIT_DEVICES ? reader->places[record->device] : READER_NO_PLACE;
    struct gpulimit_ledger_tally *grown;

    (void)outcome;
    if (device == READER_NO_PLACE || (record->allocations_total == 0 && record->bytes == 0)) {
        return GPULIMIT_READER_OK;
    }
    grown = reader_grow(ledger->tallies, ledger->tally_count, sizeof(*ledger->tallies));
    if (!grown) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    ledger->tallies = grown;
    grown += ledger->tally_count++;
    *grown = (struct gpulimit_ledger_tally){.device = device,
                                            .site = record->site,
                                            .bytes = record->bytes,
                                            .allocations_total = record->allocations_total,
                                            .frees_total = record->frees_total};
    reader_find_peak(record, reader->peak_epochs[record->device], grown);
    return GPULIMIT_READER_OK;
}

enum gpulimit_reader_status reader_read_tallies(struct reader *reader,
                                                struct gpulimit_ledger *ledger)
{
    const struct reader_run run = {.reader = reader,
                                   .ledger = ledger,
                                   .section = GPULIMIT_SECTION_TALLIES,
                                   .record_bytes = sizeof(struct gpulimit_tally),
                                   .most = GPULIMIT_READER_TALLIES_MAX,
                                   .take = reader_take_tally};

    ledger->tally_count = 0;
    return reader_read_records(&run);
}

static enum gpulimit_reader_status reader_take_timeline(struct reader *reader, const void *bytes,
                                                        enum records_outcome outcome,
                                                        struct gpulimit_ledger *ledger)
{
    const struct gpulimit_timeline *record = bytes;
    uint32_t place =
        record->device < GPULIMIT_DEVICES ? reader->places[record->device] : READER_NO_PLACE;
    struct gpulimit_ledger_device *device =
        place != READER_NO_PLACE ? &ledger->devices[place] : NULL;

    /* A sample more or less is all that a moving or half-written one has wrong, unless its
     * neighbours were just being joined. */
    (void)outcome;
    if (!device || device->samples || record->count == 0 ||
        record->count > GPULIMIT_TIMELINE_SAMPLES || record->interval_ns == 0) {
        return GPULIMIT_READER_OK;
    }
    device->samples = calloc(record->count, sizeof(*device->samples));
    if (!device->samples) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    device->sample_count = record->count;
    device->sample_start_mono_ns = record->start_mono_ns;
    device->sample_interval_ns = record->interval_ns;
    for (uint32_t i = 0; i < device->sample_count; i++) {
        device->samples[i] =
            (struct gpulimit_ledger_sample){.highest_bytes = record->samples[i].highest_bytes,
                                            .lowest_bytes = record->samples[i].lowest_bytes,
                                            .limit_bytes = record->samples[i].limit_bytes,
                                            .denials = record->samples[i].denials};
    }
    return GPULIMIT_READER_OK;
}

enum gpulimit_reader_status reader_read_timelines(struct reader *reader,
                                                  struct gpulimit_ledger *ledger)
{
    const struct reader_run run = {.reader = reader,
                                   .ledger = ledger,
                                   .section = GPULIMIT_SECTION_TIMELINES,
                                   .record_bytes = sizeof(struct gpulimit_timeline),
                                   .most = GPULIMIT_DEVICES,
                                   .take = reader_take_timeline};

    return reader_read_records(&run);
}

void reader_check_history(struct gpulimit_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->tally_count; i++) {
        if (ledger->tallies[i].site > ledger->site_count) {
            ledger->tallies[i].site = 0;
        }
    }
    for (uint32_t i = 0; i < ledger->event_count; i++) {
        if (ledger->events[i].site > ledger->site_count) {
            ledger->events[i].site = 0;
        }
    }
}
