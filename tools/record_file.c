/* SPDX-License-Identifier: MIT
 *
 * Report files, read strictly. The first thing that is wrong ends it.
 */
#include "record_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory.h"

enum { RECORD_FILE_BYTES_MAX = 16 << 20 };

/* What is being read, and the first complaint about it. */
struct record_reading {
    struct record *record;
    char *reason; /* "" so far nothing */
};

static void record_complain(const struct record_reading *reading, const char *key, const char *what)
{
    if (reading->reason[0] == '\0') {
        snprintf(reading->reason, RECORD_REASON_BYTES, "\"%s\" is not %s", key, what);
    }
}

static json_t *record_get_object(const struct record_reading *reading, json_t *object,
                                 const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_object(value)) {
        record_complain(reading, key, "an object");
    }
    return value;
}

static json_t *record_get_array(const struct record_reading *reading, json_t *object,
                                const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_array(value)) {
        record_complain(reading, key, "an array");
    }
    return value;
}

static uint64_t record_get_number(const struct record_reading *reading, json_t *object,
                                  const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        record_complain(reading, key, "a whole number from 0");
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

/* null: no limit. */
static uint64_t record_get_limit(const struct record_reading *reading, json_t *object)
{
    return json_is_null(json_object_get(object, "limit_bytes"))
               ? GPULIMIT_NO_LIMIT
               : record_get_number(reading, object, "limit_bytes");
}

static uint64_t record_get_ns(const struct record_reading *reading, json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    double seconds = json_number_value(value);

    if (!json_is_number(value) || !(seconds >= 0)) {
        record_complain(reading, key, "a number of seconds");
        return 0;
    }
    return seconds < 1e9 ? (uint64_t)(seconds * 1e9 + 0.5) : UINT64_C(1000000000000000000);
}

static const char *record_get_text(const struct record_reading *reading, json_t *object,
                                   const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_string(value)) {
        record_complain(reading, key, "a text");
        return "";
    }
    return record_keep(reading->record, json_string_value(value));
}

/* "2026-11-30T13:17:01.045Z"; null: 0. */
static uint64_t record_get_time(const struct record_reading *reading, json_t *object,
                                const char *key)
{
    json_t *value = json_object_get(object, key);
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    struct tm fields = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &fields);
    unsigned int milliseconds = 0;
    int length = 0;
    time_t seconds;

    if (json_is_null(value)) {
        return 0;
    }
    if (!rest || sscanf(rest, ".%3uZ%n", &milliseconds, &length) != 1 || length != 5 ||
        rest[length] != '\0' || (seconds = timegm(&fields)) < 0 ||
        (uint64_t)seconds > RECORD_TIME_MAX / 1000000000) {
        record_complain(reading, key, "a time");
        return 0;
    }
    return (uint64_t)seconds * 1000000000 + milliseconds * UINT64_C(1000000);
}

/* One of the states, as a constant string. */
static const char *record_get_state(const struct record_reading *reading, json_t *object)
{
    const char *text = record_get_text(reading, object, "state");

    for (int state = GPULIMIT_STATE_LIVE; state <= GPULIMIT_STATE_STALE; state++) {
        const char *name = gpulimit_reader_state_name((enum gpulimit_state)state);

        if (strcmp(text, name) == 0) {
            return name;
        }
    }
    record_complain(reading, "state", "live, exited or stale");
    return "";
}

static void record_read_head(const struct record_reading *reading, json_t *root)
{
    struct report_head *head = &reading->record->head;
    json_t *command = record_get_array(reading, root, "command");
    uint64_t pid = record_get_number(reading, root, "pid");
    const char *count_mode = record_get_text(reading, root, "count_mode");

    if (pid > INT32_MAX) {
        record_complain(reading, "pid", "the number of a process");
        return;
    }
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *argument = json_string_value(json_array_get(command, i));

        if (!argument) {
            record_complain(reading, "command", "an array of texts");
            return;
        }
        record_add_argument(reading->record, argument);
    }
    head->version = record_get_text(reading, root, "library_version");
    head->pid = (int)pid;
    head->uid = (uint32_t)record_get_number(reading, root, "uid");
    head->state = record_get_state(reading, root);
    head->limit_text = json_is_null(json_object_get(root, "limit_text"))
                           ? ""
                           : record_get_text(reading, root, "limit_text");
    head->counts_requests = strcmp(count_mode, "allocations") == 0;
    if (!head->counts_requests && strcmp(count_mode, "process") != 0) {
        record_complain(reading, "count_mode", "process or allocations");
    }
    head->start_time_ns = record_get_time(reading, root, "start_time");
    head->end_time_ns = record_get_time(reading, root, "end_time");
}

/* What is held adds up, or it is not what anybody of ours wrote. */
static void record_read_holders(const struct record_reading *reading, json_t *object,
                                const char *key, struct report_holders *holders)
{
    json_t *sites = record_get_array(reading, object, "sites");
    json_t *others = record_get_object(reading, object, "others");
    uint64_t left = record_get_number(reading, object, "bytes");
    uint64_t idle_bytes = record_get_number(reading, object, "idle_bytes");
    bool adds_up = true;

    holders->bytes = left;
    holders->overhead_bytes = record_get_number(reading, object, "overhead_bytes");
    holders->others = record_get_number(reading, others, "sites");
    holders->others_bytes = record_get_number(reading, others, "bytes");
    for (size_t i = 0; i <= json_array_size(sites); i++) {
        json_t *site = json_array_get(sites, i);
        bool is_site = i < json_array_size(sites);
        uint64_t part = is_site ? record_get_number(reading, site, "bytes") : holders->others_bytes;

        adds_up = adds_up && part <= left;
        left -= adds_up ? part : 0;
        if (is_site) {
            report_add_site(holders, record_get_text(reading, site, "where"), part,
                            record_get_number(reading, site, "count"));
        }
    }
    if (!adds_up || holders->overhead_bytes > left ||
        idle_bytes != left - holders->overhead_bytes) {
        record_complain(reading, key, "the sum of its parts");
    }
    report_settle(holders);
}

static void record_read_marks(const struct record_reading *reading, json_t *marks,
                              struct record_device *device)
{
    for (size_t i = 0; i < json_array_size(marks); i++) {
        json_t *object = json_array_get(marks, i);

        *record_add_mark(device) = (struct record_mark){
            .name = record_get_text(reading, object, "name"),
            .after_ns = record_get_ns(reading, object, "after_seconds"),
            .charged_bytes = record_get_number(reading, object, "charged_bytes"),
            .peak_bytes = record_get_number(reading, object, "peak_bytes"),
            .requested_bytes = record_get_number(reading, object, "requested_bytes"),
            .allocations_total = record_get_number(reading, object, "allocations_total"),
            .live_allocations = record_get_number(reading, object, "live_allocations"),
            .denials = record_get_number(reading, object, "denials")};
    }
}

static void record_read_timeline(const struct record_reading *reading, json_t *timeline,
                                 struct record_device *device)
{
    json_t *samples = record_get_array(reading, timeline, "samples");

    device->samples_after_ns = record_get_ns(reading, timeline, "after_seconds");
    device->interval_ns = record_get_ns(reading, timeline, "interval_seconds");
    for (size_t i = 0; i < json_array_size(samples); i++) {
        json_t *object = json_array_get(samples, i);

        *record_add_sample(device) = (struct gpulimit_ledger_sample){
            .highest_bytes = record_get_number(reading, object, "highest_bytes"),
            .lowest_bytes = record_get_number(reading, object, "lowest_bytes"),
            .limit_bytes = record_get_limit(reading, object),
            .denials = record_get_number(reading, object, "denials")};
    }
}

static void record_read_figures(const struct record_reading *reading, json_t *object,
                                struct report_device *figures)
{
    uint64_t gpu_index = record_get_number(reading, object, "gpu_index");

    if (gpu_index > UINT32_MAX) {
        record_complain(reading, "gpu_index", "the number of a GPU");
    }
    figures->gpu_index = (unsigned int)gpu_index;
    figures->gpu_uuid = record_get_text(reading, object, "gpu_uuid");
    figures->limit_bytes = record_get_limit(reading, object);
    figures->requested_bytes = record_get_number(reading, object, "requested_bytes");
    figures->committed_bytes = record_get_number(reading, object, "committed_bytes");
    figures->live_allocations = record_get_number(reading, object, "live_allocations");
    figures->allocations_total = record_get_number(reading, object, "allocations_total");
    figures->frees_total = record_get_number(reading, object, "frees_total");
    figures->largest_bytes = record_get_number(reading, object, "largest_bytes");
    figures->denials = record_get_number(reading, object, "denials");
    figures->denials_recovered = record_get_number(reading, object, "denials_recovered");
    figures->denied_bytes = record_get_number(reading, object, "denied_bytes");
    figures->driver_denials = record_get_number(reading, object, "driver_denials");
}

static void record_read_device(const struct record_reading *reading, json_t *object)
{
    struct record_device *device = record_add_device(reading->record);
    json_t *peak = record_get_object(reading, object, "peak");
    json_t *end = record_get_object(reading, object, "end");

    record_read_figures(reading, object, &device->figures);
    device->figures.peak_after_ns = record_get_ns(reading, peak, "after_seconds");
    record_read_holders(reading, peak, "peak", &device->figures.peak);
    record_read_holders(reading, end, "end", &device->figures.end);
    if (json_object_get(object, "marks")) {
        record_read_marks(reading, record_get_array(reading, object, "marks"), device);
    }
    if (json_object_get(object, "timeline")) {
        record_read_timeline(reading, record_get_object(reading, object, "timeline"), device);
    }
}

bool record_file_parse(json_t *root, struct record *record, char reason[RECORD_REASON_BYTES])
{
    struct record_reading reading = {.record = record, .reason = reason};
    json_t *devices = record_get_array(&reading, root, "devices");

    *record = (struct record){0};
    record_read_head(&reading, root);
    for (size_t i = 0; i < json_array_size(devices) && reason[0] == '\0'; i++) {
        record_read_device(&reading, json_array_get(devices, i));
    }
    if (reason[0] != '\0') {
        record_drop(record);
        return false;
    }
    return true;
}

/* NULL with a reason if it is no JSON. */
static json_t *record_load(const char *path, char reason[RECORD_REASON_BYTES])
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *bytes = file ? memory_check(malloc(RECORD_FILE_BYTES_MAX + 1)) : NULL;
    size_t length = file ? fread(bytes, 1, RECORD_FILE_BYTES_MAX + 1, file) : 0;
    bool is_read = file && !ferror(file);
    json_t *root = NULL;
    json_error_t error;

    if (!is_read) {
        snprintf(reason, RECORD_REASON_BYTES, "cannot be read: %s", strerror(errno));
    } else if (length > RECORD_FILE_BYTES_MAX) {
        snprintf(reason, RECORD_REASON_BYTES, "is larger than any report");
    } else {
        root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
        if (!root) {
            snprintf(reason, RECORD_REASON_BYTES, "is no report: line %d is no JSON", error.line);
        }
    }
    if (file && file != stdin) {
        fclose(file);
    }
    free(bytes);
    return root;
}

enum record_kind record_file_read(const char *path, struct record *record, json_t **root,
                                  char reason[RECORD_REASON_BYTES])
{
    json_t *object;
    const char *schema;
    bool is_run;

    reason[0] = '\0';
    object = record_load(path, reason);
    if (!object) {
        return RECORD_UNREADABLE;
    }
    schema = json_string_value(json_object_get(object, "schema"));
    if (schema && strcmp(schema, "gpulimit.oom/1") == 0) {
        *root = object;
        return RECORD_REFUSAL;
    }
    if (!schema || strcmp(schema, "gpulimit.report/1") != 0) {
        snprintf(reason, RECORD_REASON_BYTES,
                 "is of schema %.40s, not gpulimit.report/1 or gpulimit.oom/1",
                 schema ? schema : "(none)");
        json_decref(object);
        return RECORD_UNREADABLE;
    }
    is_run = record_file_parse(object, record, reason);
    json_decref(object);
    return is_run ? RECORD_RUN : RECORD_UNREADABLE;
}
