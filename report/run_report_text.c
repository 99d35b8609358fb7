/* SPDX-License-Identifier: MIT
 *
 * The report of a run for people; see run_report.h. What a person asks first comes first: how close
 * to the limit, when, and who held it; then what was refused and what is still there.
 */
#include "report/run_report.h"

#include <string.h>

enum {
    REPORT_TOLD = 5,         /* sites at the peak that have a line */
    REPORT_WORDS = 6,        /* of a command */
    REPORT_WHERE_BYTES = 90, /* of a site's name that are shown */
    REPORT_SIZE_WIDTH = 11   /* sizes end below each other */
};

static void report_add_duration(struct text *text, uint64_t time_ns)
{
    static const struct {
        uint64_t seconds;
        const char *large, *small;
        uint64_t small_seconds;
    } units[] = {{86400, "d", "h", 3600}, {3600, "h", "m", 60}, {60, "m", "s", 1}};
    uint64_t seconds = time_ns / 1000000000u;
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (seconds < units[i].seconds)
            continue;
        uint64_t rest = seconds % units[i].seconds / units[i].small_seconds;
        text_add_number(text, seconds / units[i].seconds);
        text_add(text, units[i].large);
        text_add(text, rest < 10 ? "0" : "");
        text_add_number(text, rest);
        text_add(text, units[i].small);
        return;
    }
    text_add_number(text, seconds);
    if (seconds < 10) {
        text_add(text, ".");
        text_add_number(text, time_ns / 100000000u % 10);
    }
    text_add(text, " s");
}

/* Moves what was added since `start` to the right, so that it ends a column. */
static void report_align(struct text *text, size_t start)
{
    size_t length = text->length - start;
    size_t shift = length < REPORT_SIZE_WIDTH ? REPORT_SIZE_WIDTH - length : 0;
    if (text->length + shift >= sizeof text->bytes)
        return;
    memmove(text->bytes + start + shift, text->bytes + start, length);
    memset(text->bytes + start, ' ', shift);
    text->length += shift;
}

static void report_add_counted(struct text *text, uint64_t count, const char *one,
                               const char *several)
{
    text_add_number(text, count);
    text_add(text, count == 1 ? one : several);
}

static void report_add_state(struct text *text, const struct report_head *head)
{
    if (strcmp(head->state, "live") == 0) {
        text_add(text, " runs");
    } else if (head->end_time_ns == 0) {
        text_add(text, " is gone without a word: killed, or crashed");
    } else {
        uint64_t start = head->start_time_ns;
        text_add(text, " ran for ");
        report_add_duration(text, head->end_time_ns > start ? head->end_time_ns - start : 0);
    }
}

/* The first words, as many as say which program it is. */
static void report_add_command(struct text *text, const struct report_head *head)
{
    unsigned count = head->command_count < REPORT_WORDS ? head->command_count : REPORT_WORDS;
    text_add(text, " (");
    for (unsigned i = 0; i < count; i++) {
        text_add(text, i > 0 ? " " : "");
        text_add_quoted(text, head->command[i], 60);
    }
    text_add(text, count < head->command_count ? " ...)" : ")");
}

void report_tell_head(struct text *text, const char *prefix, const struct report_head *head)
{
    text_init(text);
    text_add(text, prefix);
    text_add(text, "process ");
    text_add_number(text, (uint64_t)head->pid);
    if (head->command_count > 0)
        report_add_command(text, head);
    report_add_state(text, head);
    if (head->limit_text[0] != '\0') {
        text_add(text, ", under GPU_LIMIT_MB=");
        text_add_quoted(text, head->limit_text, 60);
    }
    text_add(text, head->counts_requests ? ", GPU_LIMIT_COUNT=allocations\n" : "\n");
}

void report_tell_next(struct text *text, const char *prefix, const struct report_head *head)
{
    text_init(text);
    text_add(text, prefix);
    text_add(text, "again, and with its history: gpulimit-stat report -p ");
    text_add_number(text, (uint64_t)head->pid);
    text_add(text, "\n");
}

/* Rounded down: 100 is full. */
static uint64_t report_percent(uint64_t bytes, uint64_t limit)
{
    return bytes > UINT64_MAX / 100 ? bytes / (limit / 100 + 1) : bytes * 100 / limit;
}

static void report_tell_peak(struct text *text, const struct report_device *device)
{
    text_add(text, "GPU ");
    text_add_number(text, device->gpu_index);
    text_add(text, ": peak ");
    text_add_size(text, device->peak.bytes);
    if (device->limit_bytes == GPULIMIT_NO_LIMIT) {
        text_add(text, " (no limit)");
    } else {
        text_add(text, " of ");
        text_add_size(text, device->limit_bytes);
    }
    if (device->limit_bytes != GPULIMIT_NO_LIMIT && device->limit_bytes > 0) {
        text_add(text, " (");
        text_add_number(text, report_percent(device->peak.bytes, device->limit_bytes));
        text_add(text, "%)");
    }
    text_add(text, ", ");
    report_add_duration(text, device->peak_after_ns);
    text_add(text, " after the start");
    text_add(text, device->peak.bytes > 0 ? ", held by\n" : "\n");
}

static void report_begin_holder(struct text *text, const char *prefix, uint64_t bytes)
{
    text_add(text, prefix);
    size_t start = text->length;
    text_add_size(text, bytes);
    report_align(text, start);
    text_add(text, "  ");
}

static void report_tell_site(struct text *text, const char *prefix, const struct report_site *site)
{
    report_begin_holder(text, prefix, site->bytes);
    text_add_quoted(text, site->where, REPORT_WHERE_BYTES);
    if (site->count > 0) {
        text_add(text, " (");
        report_add_counted(text, site->count, " allocation)", " allocations)");
    }
    text_add(text, "\n");
}

static void report_tell_part(struct text *text, const char *prefix, uint64_t bytes,
                             const char *what)
{
    if (bytes == 0)
        return;
    report_begin_holder(text, prefix, bytes);
    text_add(text, what);
    text_add(text, "\n");
}

void report_add_holders(struct text *text, const char *prefix, const struct report_holders *holders)
{
    uint64_t others = holders->others;
    uint64_t others_bytes = holders->others_bytes;
    for (unsigned i = 0; i < holders->site_count; i++) {
        if (i < REPORT_TOLD) {
            report_tell_site(text, prefix, &holders->sites[i]);
        } else {
            others++;
            others_bytes += holders->sites[i].bytes;
        }
    }
    if (others_bytes > 0) {
        report_begin_holder(text, prefix, others_bytes);
        report_add_counted(text, others, " other site\n", " other sites\n");
    }
    report_tell_part(text, prefix, holders->idle_bytes, "idle in pools");
    report_tell_part(text, prefix, holders->overhead_bytes, "overhead: context, code, streams");
}

static void report_tell_refusals(struct text *text, const struct report_device *device)
{
    text_add(text, "  refused       ");
    if (device->denials == 0) {
        text_add(text, "nothing");
    } else {
        report_add_counted(text, device->denials, " request for ", " requests for ");
        text_add_size(text, device->denied_bytes);
        text_add(text, " (");
        if (device->denials_recovered == 0)
            text_add(text, "none");
        else
            text_add_number(text, device->denials_recovered);
        text_add(text, " later succeeded)");
    }
    if (device->driver_denials > 0) {
        text_add(text, "; ");
        text_add_number(text, device->driver_denials);
        text_add(text, " by the driver");
    }
    text_add(text, "\n");
}

static void report_tell_totals(struct text *text, const struct report_device *device)
{
    text_add(text, "  in all        ");
    report_add_counted(text, device->allocations_total, " allocation", " allocations");
    if (device->largest_bytes > 0) {
        text_add(text, ", the largest ");
        text_add_size(text, device->largest_bytes);
    }
    text_add(text, "; ");
    report_add_counted(text, device->frees_total, " free\n", " frees\n");
}

/* Programs need not free what they hold when they end, and most do not. */
static void report_tell_end(struct text *text, const struct report_head *head,
                            const struct report_device *device)
{
    const struct report_holders *end = &device->end;
    text_add(text, strcmp(head->state, "live") == 0 ? "  live now      " : "  live at exit  ");
    text_add_size(text, end->bytes - end->idle_bytes - end->overhead_bytes);
    text_add(text, " in ");
    report_add_counted(text, device->live_allocations, " allocation", " allocations");
    if (end->site_count > 0) {
        text_add(text, ", most by ");
        text_add_quoted(text, end->sites[0].where, REPORT_WHERE_BYTES);
    }
    text_add(text, "\n");
}

void report_tell(struct text *text, const char *prefix, const struct report_head *head,
                 const struct report_device *device)
{
    text_init(text);
    text_add(text, prefix);
    report_tell_peak(text, device);
    report_add_holders(text, prefix, &device->peak);
    text_add(text, prefix);
    report_tell_refusals(text, device);
    text_add(text, prefix);
    report_tell_totals(text, device);
    text_add(text, prefix);
    report_tell_end(text, head, device);
}
