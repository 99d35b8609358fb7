/* SPDX-License-Identifier: MIT
 *
 * The report of a run for people: the library's own text, and below it the history that only the
 * ledger has.
 */
#include "report_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit_grid.h"
#include "memory.h"
#include "text.h"

enum {
    REPORT_BAR_WIDTH = 40, /* with what stands beside it, less than 80 */
    REPORT_MARKS_MAX = 30, /* more are no table for people */
};

void report_print_text(struct text *text, const struct emit_style *style)
{
    const char *at = text_string(text);

    while (*at != '\0') {
        size_t length = strcspn(at, "\n");
        char *line = memory_check(strndup(at, length));
        char *clean = text_clean(line, style->is_utf8);

        fprintf(style->out, "%s\n", clean);
        free(clean);
        free(line);
        at += length + (at[length] == '\n');
    }
}

/* Marks may be close together: tenths of the first seconds count. */
static void report_add_seconds(uint64_t time_ns, char cell[TEXT_CELL_BYTES])
{
    if (time_ns < UINT64_C(10000000000)) {
        snprintf(cell, TEXT_CELL_BYTES, "%.1fs", (double)time_ns / 1e9);
    } else {
        text_print_age(time_ns / 1000000000, cell);
    }
}

/* A column of the bar: the samples that fall into it. */
struct report_column {
    uint64_t highest_bytes;
    bool has_denials;
};

static size_t report_gather_columns(const struct record_device *device,
                                    struct report_column columns[REPORT_BAR_WIDTH])
{
    size_t width =
        device->sample_count < REPORT_BAR_WIDTH ? device->sample_count : REPORT_BAR_WIDTH;

    for (size_t i = 0; i < device->sample_count; i++) {
        struct report_column *column = &columns[i * width / device->sample_count];
        const struct gpulimit_ledger_sample *sample = &device->samples[i];

        if (sample->highest_bytes > column->highest_bytes) {
            column->highest_bytes = sample->highest_bytes;
        }
        column->has_denials |= sample->denials > 0;
    }
    return width;
}

/* An eighth of the full height each; the lowest is for whatever is not nothing. */
static const char *report_get_block(uint64_t bytes, uint64_t full_bytes, bool is_utf8)
{
    static const char *const blocks[2][9] = {
        {" ", "_", ".", "-", "=", "+", "*", "%", "#"},
        {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"},
    };
    double share = full_bytes > 0 ? (double)bytes / (double)full_bytes : 0;
    size_t height = share >= 1 ? 8 : (size_t)(share * 8);

    return blocks[is_utf8][height > 0 || bytes == 0 ? height : 1];
}

/* Use over time, up to the limit or else the peak, and where requests were refused. */
static void report_print_bar(const struct record_device *device, const struct emit_style *style)
{
    struct report_column columns[REPORT_BAR_WIDTH] = {{0}};
    size_t width = report_gather_columns(device, columns);
    bool has_limit = device->figures.limit_bytes != GPULIMIT_NO_LIMIT;
    uint64_t full_bytes = has_limit ? device->figures.limit_bytes : device->figures.peak.bytes;
    uint64_t whole_ns = device->interval_ns < UINT64_MAX / (device->sample_count + 1)
                            ? device->interval_ns * device->sample_count
                            : UINT64_MAX;
    bool has_denials = false;
    char time[TEXT_CELL_BYTES];
    struct text size;

    text_init(&size);
    text_add_size(&size, full_bytes);
    report_add_seconds(whole_ns, time);
    fputs("  over time     ", style->out);
    for (size_t i = 0; i < width; i++) {
        fputs(report_get_block(columns[i].highest_bytes, full_bytes, style->is_utf8), style->out);
        has_denials |= columns[i].has_denials;
    }
    fprintf(style->out, "  %s; up to %s\n", time, text_string(&size));
    if (!has_denials) {
        return;
    }
    fputs("                ", style->out);
    for (size_t i = 0; i < width; i++) {
        fputs(columns[i].has_denials ? "!" : " ", style->out);
    }
    fputs("  refused\n", style->out);
}

static void report_add_mark(struct grid *grid, const struct record_mark *mark,
                            const struct record_mark *before)
{
    uint64_t denials = before && before->denials <= mark->denials ? before->denials : 0;
    char cell[TEXT_CELL_BYTES];

    grid_add_line(grid, NULL);
    report_add_seconds(mark->after_ns, cell);
    grid_add_text(grid, cell, NULL);
    grid_add_bytes(grid, mark->charged_bytes);
    if (before) {
        grid_add_change(grid, before->charged_bytes, mark->charged_bytes);
    } else {
        grid_add_text(grid, "-", NULL);
    }
    grid_add_bytes(grid, mark->peak_bytes);
    grid_add_number(grid, mark->live_allocations, NULL);
    grid_add_number(grid, mark->denials - denials, NULL);
    grid_add_foreign(grid, mark->name);
}

/* What each stretch of the program, ended by a mark, left behind. */
static void report_print_marks(const struct record_device *device, const struct emit_style *style)
{
    static const struct grid_column columns[] = {
        {"AT", true, false, 6, 0},    {"USED", true, false, 8, 0},   {"CHANGE", true, false, 8, 0},
        {"PEAK", true, false, 8, 0},  {"ALLOCS", true, false, 6, 0}, {"REFUSED", true, false, 7, 0},
        {"MARK", false, true, 16, 0},
    };
    size_t first =
        device->mark_count > REPORT_MARKS_MAX ? device->mark_count - REPORT_MARKS_MAX : 0;
    struct grid grid;

    grid_open(columns, sizeof(columns) / sizeof(columns[0]), style, &grid);
    for (size_t i = first; i < device->mark_count; i++) {
        report_add_mark(&grid, &device->marks[i], i > 0 ? &device->marks[i - 1] : NULL);
    }
    grid_close(&grid);
    if (first > 0) {
        fprintf(style->out, "(%zu earlier marks: add --json)\n", first);
    }
}

void report_print_record(const struct record *record, const struct emit_style *style)
{
    struct text text;

    report_tell_head(&text, "", &record->head);
    report_print_text(&text, style);
    if (record->device_count == 0) {
        fputs("It has used no GPU.\n", style->out);
    }
    for (size_t i = 0; i < record->device_count; i++) {
        const struct record_device *device = &record->devices[i];

        report_tell(&text, "", &record->head, &device->figures);
        report_print_text(&text, style);
        if (device->sample_count > 0) {
            report_print_bar(device, style);
        }
        if (device->mark_count > 0) {
            fputc('\n', style->out);
            report_print_marks(device, style);
        }
        if (i + 1 < record->device_count) {
            fputc('\n', style->out);
        }
    }
}
