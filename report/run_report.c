/* SPDX-License-Identifier: MIT
 *
 * Who held the memory, ranked, and the report as JSON; see run_report.h.
 */
#include "report/run_report.h"

#include <string.h>

/* Bytes are somebody's word: what does not fit 64 bits stays at their edge. */
static uint64_t report_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void report_add_other(struct report_holders *holders, uint64_t bytes)
{
    holders->others++;
    holders->others_bytes = report_add(holders->others_bytes, bytes);
}

void report_add_site(struct report_holders *holders, const char *where, uint64_t bytes,
                     uint64_t count)
{
    unsigned at = holders->site_count;
    if (bytes == 0)
        return;
    if (at == REPORT_SITES) {
        at--;
        if (holders->sites[at].bytes >= bytes) {
            report_add_other(holders, bytes);
            return;
        }
        report_add_other(holders, holders->sites[at].bytes);
    } else {
        holders->site_count++;
    }
    for (; at > 0 && holders->sites[at - 1].bytes < bytes; at--)
        holders->sites[at] = holders->sites[at - 1];
    holders->sites[at] = (struct report_site){.where = where, .bytes = bytes, .count = count};
}

/* Takes at most so much as there is left. */
static void report_take(uint64_t *part, uint64_t *left)
{
    if (*part > *left)
        *part = *left;
    *left -= *part;
}

void report_settle(struct report_holders *holders)
{
    uint64_t left = holders->bytes;
    report_take(&holders->overhead_bytes, &left);
    for (unsigned i = 0; i < holders->site_count; i++)
        report_take(&holders->sites[i].bytes, &left);
    report_take(&holders->others_bytes, &left);
    holders->idle_bytes = left;
    while (holders->site_count > 0 && holders->sites[holders->site_count - 1].bytes == 0) {
        holders->site_count--;
        holders->others++;
    }
}

void report_begin(struct writer *writer, const struct report_head *head)
{
    writer_open_object(writer, NULL);
    writer_add_text(writer, "schema", "gpulimit.report/1");
    writer_add_text(writer, "library_version", head->version);
    writer_add_number(writer, "pid", (uint64_t)head->pid);
    writer_add_number(writer, "uid", head->uid);
    writer_add_text(writer, "state", head->state);
    writer_open_array(writer, "command");
    for (unsigned i = 0; i < head->command_count; i++)
        writer_add_text(writer, NULL, head->command[i]);
    writer_close_array(writer);
    writer_add_text(writer, "count_mode", head->counts_requests ? "allocations" : "process");
    writer_add_text(writer, "limit_text", head->limit_text[0] != '\0' ? head->limit_text : NULL);
    writer_add_time(writer, "start_time", head->start_time_ns);
    writer_add_time(writer, "end_time", head->end_time_ns);
    writer_open_array(writer, "devices");
}

void report_end(struct writer *writer)
{
    writer_close_array(writer);
    writer_close_object(writer);
}

/* Whether a site fits, at its longest: any byte of its name can take six. */
static bool report_has_room(const struct writer *writer, const struct report_site *site)
{
    return writer_has_room(writer, REPORT_BYTES_REST + 256 + 6 * (uint64_t)strlen(site->where));
}

static void report_put_site(struct writer *writer, const struct report_site *site)
{
    writer_open_object(writer, NULL);
    writer_add_text(writer, "where", site->where);
    writer_add_number(writer, "bytes", site->bytes);
    writer_add_number(writer, "count", site->count);
    writer_close_object(writer);
}

static void report_put_holders(struct writer *writer, const struct report_holders *holders)
{
    uint64_t others = holders->others;
    uint64_t others_bytes = holders->others_bytes;
    writer_open_array(writer, "sites");
    for (unsigned i = 0; i < holders->site_count; i++) {
        if (report_has_room(writer, &holders->sites[i])) {
            report_put_site(writer, &holders->sites[i]);
        } else {
            others++;
            others_bytes += holders->sites[i].bytes; /* settled: a part of holders->bytes */
        }
    }
    writer_close_array(writer);
    writer_open_object(writer, "others");
    writer_add_number(writer, "sites", others);
    writer_add_number(writer, "bytes", others_bytes);
    writer_close_object(writer);
    writer_add_number(writer, "idle_bytes", holders->idle_bytes);
    writer_add_number(writer, "overhead_bytes", holders->overhead_bytes);
}

static void report_put_counters(struct writer *writer, const struct report_device *device)
{
    writer_add_number(writer, "requested_bytes", device->requested_bytes);
    writer_add_number(writer, "committed_bytes", device->committed_bytes);
    writer_add_number(writer, "live_allocations", device->live_allocations);
    writer_add_number(writer, "allocations_total", device->allocations_total);
    writer_add_number(writer, "frees_total", device->frees_total);
    writer_add_number(writer, "largest_bytes", device->largest_bytes);
    writer_add_number(writer, "denials", device->denials);
    writer_add_number(writer, "denials_recovered", device->denials_recovered);
    writer_add_number(writer, "denied_bytes", device->denied_bytes);
    writer_add_number(writer, "driver_denials", device->driver_denials);
}

void report_open_device(struct writer *writer, const struct report_device *device)
{
    writer_open_object(writer, NULL);
    writer_add_number(writer, "gpu_index", device->gpu_index);
    writer_add_text(writer, "gpu_uuid", device->gpu_uuid);
    if (device->limit_bytes == GPULIMIT_NO_LIMIT)
        writer_add_null(writer, "limit_bytes");
    else
        writer_add_number(writer, "limit_bytes", device->limit_bytes);
    writer_open_object(writer, "peak");
    writer_add_number(writer, "bytes", device->peak.bytes);
    writer_add_seconds(writer, "after_seconds", device->peak_after_ns);
    report_put_holders(writer, &device->peak);
    writer_close_object(writer);
    writer_open_object(writer, "end");
    writer_add_number(writer, "bytes", device->end.bytes);
    report_put_holders(writer, &device->end);
    writer_close_object(writer);
    report_put_counters(writer, device);
}

void report_close_device(struct writer *writer)
{
    writer_close_object(writer);
}

void report_add_device(struct writer *writer, const struct report_device *device)
{
    report_open_device(writer, device);
    report_close_device(writer);
}
