/* SPDX-License-Identifier: MIT
 *
 * Prints views as JSON for programs: schemas gpulimit.stat/1, gpulimit.hooks/1 and
 * gpulimit.doctor/1.
 */
#include "emit_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <time.h>

#include "hooks_list.h"
#include "memory.h"
#include "sites.h"
#include "text.h"

/* jansson fails only where memory does: our strings are valid UTF-8, our keys never NULL. */
static void emit_set(json_t *object, const char *key, json_t *value)
{
    memory_check(json_object_set_new(object, key, value) == 0 ? object : NULL);
}

static void emit_append(json_t *array, json_t *value)
{
    memory_check(json_array_append_new(array, value) == 0 ? array : NULL);
}

static json_t *emit_text(const char *text)
{
    char *valid = text_to_utf8(text);
    json_t *value = json_string(valid);

    free(valid);
    return value;
}

/* JSON's integers are signed here; a counter beyond them is nonsense from a damaged ledger anyway.
 */
static json_t *emit_number(uint64_t number)
{
    return json_integer(number <= INT64_MAX ? (json_int_t)number : INT64_MAX);
}

static json_t *emit_kinds(const struct gpulimit_ledger_device *device)
{
    json_t *kinds = json_object();

    for (uint32_t kind = GPULIMIT_KIND_NONE + 1; kind < GPULIMIT_KINDS; kind++) {
        json_t *figures = json_object();

        emit_set(figures, "bytes", emit_number(device->by_kind[kind].bytes));
        emit_set(figures, "count", emit_number(device->by_kind[kind].count));
        emit_set(kinds, gpulimit_reader_kind_name(kind), figures);
    }
    return kinds;
}

static json_t *emit_device(const struct view_row *row)
{
    const struct gpulimit_ledger_device *device = row->device;
    json_t *object = json_object();

    emit_set(object, "gpu_index", emit_number(device->gpu_index));
    emit_set(object, "gpu_uuid", emit_text(device->gpu_uuid));
#define FIELD(_name, _type, _text) emit_set(object, #_name, emit_number(device->_name));
#include "gpulimit/tbl/fields.def"
    if (device->limit_bytes == GPULIMIT_NO_LIMIT) {
        emit_set(object, "limit_bytes", json_null()); /* keeps its place */
    }
    emit_set(object, "driver_denials", emit_number(device->driver_denials));
    emit_set(object, "untracked_bytes",
             row->has_untracked ? json_integer(row->untracked_bytes) : json_null());
    emit_set(object, "truth_source", json_string(gpulimit_reader_truth_name(device->truth_source)));
    emit_set(object, "by_kind", emit_kinds(device));
    return object;
}

static json_t *emit_text_or_null(const char *text)
{
    return text && text[0] != '\0' ? emit_text(text) : json_null();
}

/* A string, as addresses are: JSON's numbers are no place for 64 bits. */
static json_t *emit_address(uint64_t address)
{
    char text[2 + 16 + 1];

    snprintf(text, sizeof(text), "0x%" PRIx64, address);
    return emit_text(text);
}

static json_t *emit_build_id(const struct gpulimit_module *module)
{
    char text[2 * sizeof(module->build_id) + 1] = "";

    for (uint32_t i = 0; i < module->build_id_bytes; i++) {
        snprintf(text + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
    }
    return emit_text_or_null(text);
}

static json_t *emit_frame(const struct sites_frame *frame, struct symbols *symbols)
{
    bool is_native = frame->kind == GPULIMIT_FRAME_NATIVE;
    struct symbol symbol = {frame->function, frame->file, frame->line};
    json_t *object = json_object();

    if (is_native) {
        symbol = frame->module ? symbols_find(symbols, frame->module, frame->address)
                               : (struct symbol){0};
    }
    emit_set(object, "kind",
             json_string(is_native                              ? "native"
                         : frame->kind == GPULIMIT_FRAME_PYTHON ? "python"
                                                                : "unknown"));
    emit_set(object, "file", emit_text_or_null(symbol.file));
    emit_set(object, "line", symbol.line > 0 ? emit_number(symbol.line) : json_null());
    emit_set(object, "function", emit_text_or_null(symbol.function));
    emit_set(object, "module", emit_text_or_null(frame->module ? frame->module->path : NULL));
    emit_set(object, "offset", is_native ? emit_address(frame->address) : json_null());
    emit_set(object, "build_id", frame->module ? emit_build_id(frame->module) : json_null());
    return object;
}

static json_t *emit_site(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site,
                         struct symbols *symbols)
{
    json_t *object = json_object();
    json_t *frames = json_array();

    for (uint32_t number = 0; number < sites_get_count(site); number++) {
        struct sites_frame frame = sites_get_frame(ledger, site, number);

        emit_append(frames, emit_frame(&frame, symbols));
    }
    emit_set(object, "frames", frames);
    return object;
}

static json_t *emit_allocation(const struct view *view, const struct gpulimit_ledger *ledger,
                               const struct gpulimit_ledger_entry *entry, struct symbols *symbols)
{
    const struct gpulimit_site *site = gpulimit_reader_site(ledger, entry->site);
    json_t *object = json_object();

    emit_set(object, "address", emit_address(entry->address));
    emit_set(object, "kind", emit_text(gpulimit_reader_kind_name(entry->kind)));
    emit_set(object, "api", emit_text(gpulimit_reader_api_name(ledger, entry->api)));
    emit_set(object, "requested_bytes", emit_number(entry->requested_bytes));
    emit_set(object, "committed_bytes", emit_number(entry->committed_bytes));
    emit_set(object, "gpu_index", emit_number(ledger->devices[entry->device].gpu_index));
    emit_set(object, "thread_id", emit_number(entry->thread_id));
    emit_set(object, "age_seconds", emit_number(view_get_entry_age(view, ledger, entry)));
    emit_set(object, "tag", emit_text_or_null(sites_get_tag(ledger, entry)));
    emit_set(object, "stream", emit_text_or_null(sites_get_stream(ledger, entry)));
    emit_set(object, "site", emit_site(ledger, site, symbols));
    return object;
}

/* NULL: the view does not show the device. */
static const struct view_row *emit_find_row(const struct view *view,
                                            const struct gpulimit_ledger_device *device)
{
    for (size_t i = 0; i < view->row_count; i++) {
        if (view->rows[i].device == device) {
            return &view->rows[i];
        }
    }
    return NULL;
}

static json_t *emit_allocations(const struct view *view, const struct gpulimit_ledger *ledger,
                                struct symbols *symbols)
{
    json_t *allocations = json_array();
    bool is_shown[GPULIMIT_DEVICES];

    for (uint32_t i = 0; i < ledger->device_count; i++) {
        is_shown[i] = emit_find_row(view, &ledger->devices[i]) != NULL;
    }
    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        if (is_shown[ledger->entries[i].device]) {
            emit_append(allocations, emit_allocation(view, ledger, &ledger->entries[i], symbols));
        }
    }
    return allocations;
}

static json_t *emit_growing(const struct gpulimit_ledger *ledger,
                            const struct emit_json_style *style)
{
    json_t *growing = json_array();

    for (size_t i = 0; i < style->growth->count; i++) {
        const struct growth_row *row = &style->growth->rows[i];
        const struct group *group = row->group;
        json_t *object;

        if (group->ledger != ledger) {
            continue;
        }
        object = json_object();
        emit_set(object, "gpu_index", emit_number(group->device->gpu_index));
        emit_set(object, "score", emit_number(row->score));
        emit_set(object, "growth_bytes_per_minute", emit_number(row->bytes_per_minute));
        emit_set(object, "bytes", emit_number(group->bytes));
        emit_set(object, "count", emit_number(group->count));
        emit_set(object, "allocations_total", emit_number(row->allocations_total));
        emit_set(object, "frees_total", emit_number(row->frees_total));
        emit_set(object, "site", emit_site(ledger, group->example->site, style->symbols));
        emit_append(growing, object);
    }
    return growing;
}

static json_t *emit_process(const struct view *view, const struct gpulimit_ledger *ledger,
                            const struct emit_json_style *style)
{
    json_t *object = json_object();
    json_t *command = json_array();
    json_t *devices = json_array();

    for (uint32_t i = 0; i < ledger->argument_count; i++) {
        emit_append(command, emit_text(ledger->arguments[i]));
    }
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        const struct view_row *row = emit_find_row(view, &ledger->devices[i]);

        if (row) {
            emit_append(devices, emit_device(row));
        }
    }
    emit_set(object, "pid", json_integer(ledger->pid));
    emit_set(object, "state", emit_text(gpulimit_reader_state_name(ledger->state)));
    emit_set(object, "uid", emit_number(ledger->owner_uid));
    emit_set(object, "command", command);
    emit_set(object, "count_mode",
             json_string(ledger->count_mode == GPULIMIT_COUNT_PROCESS ? "process" : "allocations"));
    emit_set(object, "group", ledger->group[0] != '\0' ? emit_text(ledger->group) : json_null());
    emit_set(object, "ledger_path", emit_text(ledger->path));
    emit_set(object, "devices", devices);
    if (style->has_allocations) {
        emit_set(object, "allocations", emit_allocations(view, ledger, style->symbols));
    }
    if (style->growth) {
        emit_set(object, "growing", emit_growing(ledger, style));
    }
    return object;
}

static json_t *emit_warnings(const struct warnings *warnings)
{
    json_t *array = json_array();

    for (size_t i = 0; i < warnings->count; i++) {
        const struct warning *warning = &warnings->list[i];
        json_t *object = json_object();

        emit_set(object, "code", emit_text(warning->code));
        emit_set(object, "message", emit_text(warning->message));
        emit_set(object, "path", warning->path ? emit_text(warning->path) : json_null());
        emit_append(array, object);
    }
    return array;
}

/* RFC 3339, in UTC, to the millisecond. */
static json_t *emit_time(uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    char date[32];
    char *whole;
    struct tm fields;
    json_t *value;

    gmtime_r(&seconds, &fields);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &fields);
    whole = memory_print("%s.%03uZ", date, (unsigned int)(time_ns / 1000000 % 1000));
    value = emit_text(whole);
    free(whole);
    return value;
}

/* ASCII only: there are control characters beyond ASCII too, and a terminal may be what reads this.
 */
static void emit_print(json_t *object, bool is_stream, FILE *out)
{
    size_t flags = JSON_ENSURE_ASCII | (is_stream ? JSON_COMPACT : JSON_INDENT(2));

    json_dumpf(object, out, flags); /* a failed write is found when the stream is flushed */
    putc('\n', out);
    json_decref(object);
}

void emit_json_view(const struct view *view, const struct warnings *warnings,
                    const struct emit_json_style *style)
{
    json_t *object = json_object();
    json_t *processes = json_array();

    for (size_t i = 0; i < view->ledger_count; i++) {
        emit_append(processes, emit_process(view, view->ledgers[i], style));
    }
    emit_set(object, "schema", json_string("gpulimit.stat/1"));
    emit_set(object, "tool_version", json_string(GPULIMIT_VERSION));
    emit_set(object, "generated_time", emit_time(view->time_ns));
    emit_set(object, "processes", processes);
    emit_set(object, "warnings", emit_warnings(warnings));
    emit_print(object, style->is_stream, style->out);
}

void emit_json_hooks(FILE *out)
{
    json_t *object = json_object();
    json_t *hooks = json_array();

    for (size_t i = 0; i < HOOKS_LIST_COUNT; i++) {
        json_t *hook = json_object();

        emit_set(hook, "symbol", json_string(hooks_list[i].symbol));
        emit_set(hook, "room", json_string(hooks_list[i].room));
        emit_set(hook, "role", json_string(hooks_list[i].role));
        emit_set(hook, "text", json_string(hooks_list[i].text));
        emit_append(hooks, hook);
    }
    emit_set(object, "schema", json_string("gpulimit.hooks/1"));
    emit_set(object, "tool_version", json_string(GPULIMIT_VERSION));
    emit_set(object, "hooks", hooks);
    emit_print(object, false, out);
}

void emit_json_doctor(const struct doctor *doctor, FILE *out)
{
    json_t *object = json_object();
    json_t *findings = json_array();

    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        json_t *item = json_object();

        emit_set(item, "level", json_string(doctor_level_name(finding->level)));
        emit_set(item, "pid", finding->pid != 0 ? json_integer(finding->pid) : json_null());
        emit_set(item, "check", json_string(finding->check));
        emit_set(item, "text", emit_text(finding->text));
        emit_set(item, "advice", finding->advice ? emit_text(finding->advice) : json_null());
        emit_append(findings, item);
    }
    emit_set(object, "schema", json_string("gpulimit.doctor/1"));
    emit_set(object, "tool_version", json_string(GPULIMIT_VERSION));
    emit_set(object, "is_well", json_boolean(doctor->fails == 0));
    emit_set(object, "findings", findings);
    emit_print(object, false, out);
}
