/* SPDX-License-Identifier: MIT
 *
 * Assertions about a run, for continuous integration.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum check_name { CHECK_PEAK, CHECK_DENIALS, CHECK_LIVE, CHECK_COMPARE };

static const char *const check_names[] = {
    [CHECK_PEAK] = "peak_below",
    [CHECK_DENIALS] = "max_denials",
    [CHECK_LIVE] = "max_live_at_exit",
    [CHECK_COMPARE] = "compare",
};

static uint64_t check_get_live(const struct report_device *device)
{
    return device->end.bytes - device->end.idle_bytes - device->end.overhead_bytes;
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

/* Rounded down; what is beyond 64 bits stays at their edge. */
static uint64_t check_add_tolerance(uint64_t bytes, uint64_t tolerance)
{
    double most = (double)bytes * ((double)tolerance / (100.0 * (double)CHECK_PERCENT));
    uint64_t more = most < 0x1p63 ? (uint64_t)most : UINT64_MAX / 2;

    return bytes > UINT64_MAX - more ? UINT64_MAX : bytes + more;
}

static void check_add(struct check *check, const struct check_result *result)
{
    check->results = memory_grow(check->results, check->count, sizeof(*check->results));
    check->results[check->count++] = *result;
    check->fails += !result->is_ok;
}

static void check_device(const struct check_request *request, const struct record *base,
                         const struct report_device *device, struct check *check)
{
    struct check_result result = {.device = device};

    if (request->has_peak) {
        result.name = check_names[CHECK_PEAK];
        result.expected = request->peak_below_bytes;
        result.actual = device->peak.bytes;
        result.is_ok = result.actual < result.expected;
        check_add(check, &result);
    }
    if (base) {
        result.name = check_names[CHECK_COMPARE];
        result.expected =
            check_add_tolerance(check_get_base_peak(base, device), request->tolerance);
        result.actual = device->peak.bytes;
        result.is_ok = result.actual <= result.expected;
        check_add(check, &result);
    }
    if (request->has_denials) {
        result.name = check_names[CHECK_DENIALS];
        result.is_count = true;
        result.expected = request->max_denials;
        result.actual = device->denials;
        result.is_ok = result.actual <= result.expected;
        check_add(check, &result);
    }
    if (request->has_live) {
        result.name = check_names[CHECK_LIVE];
        result.is_count = false;
        result.is_at_end = true;
        result.expected = request->max_live_bytes;
        result.actual = check_get_live(device);
        result.is_ok = result.actual <= result.expected;
        check_add(check, &result);
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
    if (result->is_count) {
        text_add_number(text, figure);
    } else {
        text_add_size(text, figure);
    }
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
    bool is_peak = result->name == check_names[CHECK_PEAK];
    bool is_compare = result->name == check_names[CHECK_COMPARE];

    text_init(text);
    text_add(text, "GPU ");
    text_add_number(text, result->device->gpu_index);
    text_add(text, is_peak || is_compare ? ": peak " : ": ");
    check_add_figure(text, result, result->actual);
    if (result->name == check_names[CHECK_DENIALS]) {
        text_add(text, result->actual == 1 ? " request refused" : " requests refused");
    } else if (result->name == check_names[CHECK_LIVE]) {
        text_add(text, " live at exit");
    }
    if (is_peak) {
        text_add(text, result->is_ok ? ", below " : ", not below ");
    } else {
        text_add(text, result->is_ok ? ", no more than " : ", more than ");
    }
    check_add_figure(text, result, result->expected);
    if (is_compare) {
        check_add_base(text, request);
    }
}

struct report_holders check_get_holders(const struct check_result *result)
{
    struct report_holders holders = result->is_at_end ? result->device->end : result->device->peak;

    if (result->is_at_end) { /* nobody's allocation */
        holders.bytes = check_get_live(result->device);
        holders.idle_bytes = 0;
        holders.overhead_bytes = 0;
    }
    return holders;
}
