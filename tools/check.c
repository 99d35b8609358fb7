/* SPDX-License-Identifier: MIT
 *
 * Assertions about a run, for continuous integration.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

static bool check_expect_peak(const struct check_request *request, const struct record *base,
                              const struct report_device *device, uint64_t *expected)
{
    (void)base;
    (void)device;
    *expected = request->peak_below_bytes;
    return request->has_peak;
}

static bool check_expect_denials(const struct check_request *request, const struct record *base,
                                 const struct report_device *device, uint64_t *expected)
{
    (void)base;
    (void)device;
    *expected = request->max_denials;
    return request->has_denials;
}

static bool check_expect_live(const struct check_request *request, const struct record *base,
                              const struct report_device *device, uint64_t *expected)
{
    (void)base;
    (void)device;
    *expected = request->max_live_bytes;
    return request->has_live;
}

/* A GPU that the other run has not used had a peak of 0. */
static uint64_t check_get_base_peak(const struct record *base, const struct report_device *device)
{
    for (size_t i = 0; i < base->device_count; i++) {
        if (base->devices[i].figures.gpu_index == device->gpu_index) {
            return base->devices[i].figures.peak.bytes;
        }
    }
    return 0;
}

/* The tolerance is rounded down; what JSON has no room for stays at the edge of it. */
static bool check_expect_base(const struct check_request *request, const struct record *base,
                              const struct report_device *device, uint64_t *expected)
{
    uint64_t peak_bytes = base ? check_get_base_peak(base, device) : 0;
    double more =
        (double)peak_bytes * ((double)request->tolerance / (100.0 * (double)CHECK_PERCENT));
    uint64_t room = INT64_MAX - (peak_bytes <= INT64_MAX ? peak_bytes : INT64_MAX);

    *expected = peak_bytes + (more < (double)room ? (uint64_t)more : room);
    return base != NULL;
}

static uint64_t check_get_peak(const struct report_device *device)
{
    return device->peak.bytes;
}

static uint64_t check_get_denials(const struct report_device *device)
{
    return device->denials;
}

static uint64_t check_get_live(const struct report_device *device)
{
    return device->end.bytes - device->end.idle_bytes - device->end.overhead_bytes;
}

/* In the order in which they are told. */
static const struct check_row check_rows[] = {
    {"peak_below", "peak ", "", true, false, false, check_expect_peak, check_get_peak},
    {"compare", "peak ", "", false, false, false, check_expect_base, check_get_peak},
    {"max_denials", "", " refused", false, true, false, check_expect_denials, check_get_denials},
    {"max_live_at_exit", "", " live at exit", false, false, true, check_expect_live,
     check_get_live},
};

enum { CHECK_ROWS = sizeof(check_rows) / sizeof(check_rows[0]) };

static void check_device(const struct check_request *request, const struct record *base,
                         const struct report_device *device, struct check *check)
{
    for (size_t i = 0; i < CHECK_ROWS; i++) {
        const struct check_row *row = &check_rows[i];
        struct check_result result = {.row = row, .device = device};

        if (!row->get_expected(request, base, device, &result.expected)) {
            continue;
        }
        result.actual = row->get_actual(device);
        result.is_ok =
            row->is_below ? result.actual < result.expected : result.actual <= result.expected;
        check->results = memory_grow(check->results, check->count, sizeof(*check->results));
        check->results[check->count++] = result;
        check->fails += !result.is_ok;
    }
}

void check_open(const struct check_request *request, const struct record *record,
                const struct record *base, struct check *check)
{
    *check = (struct check){0};
    for (size_t i = 0; i < record->device_count; i++) {
        check_device(request, base, &record->devices[i].figures, check);
    }
}

void check_close(struct check *check)
{
    free(check->results);
    *check = (struct check){0};
}

static void check_add_figure(struct text *text, const struct check_result *result, uint64_t figure)
{
    if (!result->row->is_count) {
        text_add_size(text, figure);
        return;
    }
    text_add_number(text, figure);
}

/* "(base.json and 4.2%)" */
static void check_add_base(struct text *text, const struct check_request *request)
{
    char percent[32];

    text_add(text, " (");
    text_add_quoted(text, request->base_path, 200);
    if (request->tolerance > 0) {
        snprintf(percent, sizeof(percent), " and %g%%",
                 (double)request->tolerance / (double)CHECK_PERCENT);
        text_add(text, percent);
    }
    text_add(text, ")");
}

void check_explain(const struct check_request *request, const struct check_result *result,
                   struct text *text)
{
    const struct check_row *row = result->row;
    const char *relation = row->is_below ? ", not below " : ", more than ";

    if (result->is_ok) {
        relation = row->is_below ? ", below " : ", no more than ";
    }
    text_init(text);
    text_add(text, "GPU ");
    text_add_number(text, result->device->gpu_index);
    text_add(text, ": ");
    text_add(text, row->before);
    check_add_figure(text, result, result->actual);
    if (row->is_count) {
        text_add(text, result->actual == 1 ? " request" : " requests");
    }
    text_add(text, row->after);
    text_add(text, relation);
    check_add_figure(text, result, result->expected);
    if (row->get_expected == check_expect_base) {
        check_add_base(text, request);
    }
}

struct report_holders check_get_holders(const struct check_result *result)
{
    bool is_at_end = result->row->is_at_end;
    struct report_holders holders = is_at_end ? result->device->end : result->device->peak;

    if (is_at_end) { /* nobody's allocation */
        holders.bytes = check_get_live(result->device);
        holders.idle_bytes = 0;
        holders.overhead_bytes = 0;
    }
    return holders;
}
