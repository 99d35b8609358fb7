/* SPDX-License-Identifier: MIT
 *
 * The report of a run as JSON: what the library writes at the end of it, by the same functions,
 * and the history besides.
 */
#include "report_print.h"

static void report_put_marks(struct writer *writer, const struct record_device *device)
{
    writer_open_array(writer, "marks");
    for (size_t i = 0; i < device->mark_count; i++) {
        const struct record_mark *mark = &device->marks[i];

        writer_open_object(writer, NULL);
        writer_add_text(writer, "name", mark->name);
        writer_add_seconds(writer, "after_seconds", mark->after_ns);
        writer_add_number(writer, "charged_bytes", mark->charged_bytes);
        writer_add_number(writer, "peak_bytes", mark->peak_bytes);
        writer_add_number(writer, "requested_bytes", mark->requested_bytes);
        writer_add_number(writer, "live_allocations", mark->live_allocations);
        writer_add_number(writer, "allocations_total", mark->allocations_total);
        writer_add_number(writer, "denials", mark->denials);
        writer_close_object(writer);
    }
    writer_close_array(writer);
}

static void report_put_timeline(struct writer *writer, const struct record_device *device)
{
    writer_open_object(writer, "timeline");
    writer_add_seconds(writer, "after_seconds", device->samples_after_ns);
    writer_add_seconds(writer, "interval_seconds", device->interval_ns);
    writer_open_array(writer, "samples");
    for (size_t i = 0; i < device->sample_count; i++) {
        const struct gpulimit_ledger_sample *sample = &device->samples[i];

        writer_open_object(writer, NULL);
        writer_add_number(writer, "highest_bytes", sample->highest_bytes);
        writer_add_number(writer, "lowest_bytes", sample->lowest_bytes);
        if (sample->limit_bytes == GPULIMIT_NO_LIMIT) {
            writer_add_null(writer, "limit_bytes");
        } else {
            writer_add_number(writer, "limit_bytes", sample->limit_bytes);
        }
        writer_add_number(writer, "denials", sample->denials);
        writer_close_object(writer);
    }
    writer_close_array(writer);
    writer_close_object(writer);
}

bool report_print_json(const struct record *record, int file)
{
    struct writer writer;

    writer_begin(&writer, file, UINT64_MAX);
    report_begin(&writer, &record->head);
    for (size_t i = 0; i < record->device_count; i++) {
        const struct record_device *device = &record->devices[i];

        report_open_device(&writer, &device->figures);
        report_put_marks(&writer, device);
        if (device->sample_count > 0) {
            report_put_timeline(&writer, device);
        }
        report_close_device(&writer);
    }
    report_end(&writer);
    return writer_end(&writer);
}
