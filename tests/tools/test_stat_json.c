/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat's JSON, parsed back: the keys of schema gpulimit.stat/1 with their types, neither
 * more nor fewer, in their order; the figures; the stream of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema_check.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

struct key {
    const char *name;
    json_type type;
};

#define I JSON_INTEGER
#define S JSON_STRING
#define A JSON_ARRAY
#define O JSON_OBJECT
#define N JSON_NULL /* known in test_stat_untracked.c and test_stat_sites.c */

/* The document's own list, spelt out: fields.def and kinds.def must not be able to change it
 * unnoticed. */
static const struct key whole_keys[] = {{"schema", S},         {"tool_version", S},
                                        {"generated_time", S}, {"processes", A},
                                        {"warnings", A},       {NULL, I}};
static const struct key process_keys[] = {
    {"pid", I},   {"state", S},       {"uid", I},     {"command", A},     {"count_mode", S},
    {"group", S}, {"ledger_path", S}, {"devices", A}, {"allocations", A}, {NULL, I}};
static const struct key device_keys[] = {
    {"gpu_index", I},         {"gpu_uuid", S},        {"limit_bytes", I},
    {"charged_bytes", I},     {"requested_bytes", I}, {"committed_bytes", I},
    {"overhead_bytes", I},    {"peak_bytes", I},      {"live_allocations", I},
    {"allocations_total", I}, {"frees_total", I},     {"denials", I},
    {"denials_recovered", I}, {"driver_denials", I},  {"untracked_bytes", N},
    {"truth_source", S},      {"by_kind", O},         {NULL, I}};
static const struct key kinds_keys[] = {{"linear", O},   {"managed", O}, {"async", O},
                                        {"graph", O},    {"vmm", O},     {"array", O},
                                        {"imported", O}, {NULL, I}};
static const struct key kind_keys[] = {{"bytes", I}, {"count", I}, {NULL, I}};
static const struct key allocation_keys[] = {{"address", S},
                                             {"kind", S},
                                             {"api", S},
                                             {"requested_bytes", I},
                                             {"committed_bytes", I},
                                             {"gpu_index", I},
                                             {"thread_id", I},
                                             {"age_seconds", I},
                                             {"tag", N},
                                             {"stream", N},
                                             {"site", O},
                                             {NULL, I}};
static const struct key site_keys[] = {{"frames", A}, {NULL, I}};
static const struct key warning_keys[] = {{"code", S}, {"message", S}, {"path", S}, {NULL, I}};

static void test_expect_keys(json_t *object, const struct key *keys)
{
    const char *name;
    json_t *value;

    assert_true(json_is_object(object));
    json_object_foreach(object, name, value)
    {
        assert_non_null(keys->name);
        assert_string_equal(name, keys->name);
        if (json_typeof(value) != keys->type) {
            fail_msg("%s has type %d", name, json_typeof(value));
        }
        keys++;
    }
    assert_null(keys->name);
}

static json_t *test_parse(const char *text)
{
    json_error_t error;
    json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!whole) {
        fail_msg("line %d: %s", error.line, error.text);
    }
    return whole;
}

static int test_set_up(void **state)
{
    struct gpulimit_entry *entries;
    struct fixture fixture;

    folder_open(state);
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    strcpy(fixture.header->group, "lab");
    fixture_set_command(&fixture, "py\xff\0caf\xc3\xa9\0\033[2J", 14);
    entries = fixture_add_entries(&fixture, 4);
    fixture_fill_entry(&fixture, &entries[2], GPULIMIT_PLACE(GPULIMIT_KIND_ASYNC, 0, 1), 3, 7);
    entries[2].address = UINT64_C(0xffffffffffffffff);
    entries[3].sequence = 1; /* for a warning */
    folder_add(&fixture, "1", true);
    return 0;
}

static void test_keys_types_and_order_are_the_schemas(void **state)
{
    struct tool_result result;
    json_t *whole;
    json_t *process;
    json_t *device;
    json_t *kind;
    json_t *allocation;
    const char *name;

    (void)state;
    TOOL_RUN(&result, STAT, "--json", "--allocs");
    assert_int_equal(result.status, 0);
    schema_check("stat", result.out);
    whole = test_parse(result.out);
    test_expect_keys(whole, whole_keys);
    process = json_array_get(json_object_get(whole, "processes"), 0);
    test_expect_keys(process, process_keys);
    device = json_array_get(json_object_get(process, "devices"), 0);
    test_expect_keys(device, device_keys);
    test_expect_keys(json_object_get(device, "by_kind"), kinds_keys);
    json_object_foreach(json_object_get(device, "by_kind"), name, kind)
    {
        test_expect_keys(kind, kind_keys);
    }
    allocation = json_array_get(json_object_get(process, "allocations"), 0);
    test_expect_keys(allocation, allocation_keys);
    test_expect_keys(json_object_get(allocation, "site"), site_keys);
    test_expect_keys(json_array_get(json_object_get(whole, "warnings"), 0), warning_keys);
    json_decref(whole);
    tool_forget(&result);
}

static void test_figures_are_the_ledgers(void **state)
{
    const char *schema, *when, *process_state, *mode, *group, *uuid, *address, *kind, *api;
    json_int_t pid, limit, charged, requested, committed, age;
    struct tool_result result;
    json_t *whole;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "--json");
    schema_check("stat", result.out);
    whole = test_parse(result.out);
    assert_int_equal(json_unpack(whole,
                                 "{s:s, s:s, s:[{s:I, s:s, s:s, s:s, s:[{s:s, s:I, s:I}],"
                                 " s:[{s:s, s:s, s:s, s:I, s:I, s:I}]}]}",
                                 "schema", &schema, "generated_time", &when, "processes", "pid",
                                 &pid, "state", &process_state, "count_mode", &mode, "group",
                                 &group, "devices", "gpu_uuid", &uuid, "limit_bytes", &limit,
                                 "charged_bytes", &charged, "allocations", "address", &address,
                                 "kind", &kind, "api", &api, "requested_bytes", &requested,
                                 "committed_bytes", &committed, "age_seconds", &age),
                     0);
    assert_string_equal(schema, "gpulimit.stat/1");
    assert_int_equal(strlen(when), strlen("2025-01-31T23:59:59.999Z"));
    assert_int_equal(when[strlen(when) - 1], 'Z');
    assert_int_equal(pid, 4121);
    assert_string_equal(process_state, "live");
    assert_string_equal(mode, "process");
    assert_string_equal(group, "lab");
    assert_string_equal(uuid, "GPU-0000abc0-1111-2222-3333-444444444444");
    assert_int_equal(limit, 1024 * FIXTURE_MIB);
    assert_int_equal(charged, 64 * FIXTURE_MIB);
    assert_string_equal(address, "0xffffffffffffffff");
    assert_string_equal(kind, "async");
    assert_string_equal(api, "cuMemAllocAsync");
    assert_int_equal(requested, 3 * FIXTURE_MIB);
    assert_int_equal(committed, 4 * FIXTURE_MIB);
    assert_true(age >= 7 && age < 60);
    json_decref(whole);
    tool_forget(&result);
}

static void test_foreign_bytes_stay_text(void **state)
{
    const char *invalid, *accent, *escape;
    struct tool_result result;
    json_t *whole;

    (void)state;
    TOOL_RUN(&result, STAT, "--json");
    for (const char *at = result.out; *at != '\0'; at++) {
        assert_true((*at >= ' ' && *at <= '~') || *at == '\n');
    }
    schema_check("stat", result.out);
    whole = test_parse(result.out);
    assert_int_equal(
        json_unpack(whole, "{s:[{s:[s,s,s]}]}", "processes", "command", &invalid, &accent, &escape),
        0);
    assert_string_equal(invalid, "py\\xff");
    assert_string_equal(accent, "caf\xc3\xa9");
    assert_string_equal(escape, "\033[2J");
    json_decref(whole);
    tool_forget(&result);
}

static void test_no_limit_and_no_group_are_null(void **state)
{
    struct tool_result result;
    struct fixture fixture;
    json_t *process;
    json_t *whole;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4200;
    fixture_add_device(&fixture, 0)->limit_bytes = GPULIMIT_NO_LIMIT;
    fixture.devices[0].peak_bytes = UINT64_MAX; /* nonsense, but a number */
    folder_add(&fixture, "2", true);
    TOOL_RUN(&result, STAT, "--json", "-p", "4200");
    schema_check("stat", result.out);
    whole = test_parse(result.out);
    process = json_array_get(json_object_get(whole, "processes"), 0);
    assert_true(json_is_null(json_object_get(process, "group")));
    assert_null(json_object_get(process, "allocations"));
    process = json_array_get(json_object_get(process, "devices"), 0);
    assert_true(json_is_null(json_object_get(process, "limit_bytes")));
    assert_int_equal(json_integer_value(json_object_get(process, "peak_bytes")), INT64_MAX);
    json_decref(whole);
    tool_forget(&result);
}

static void test_stream_is_an_object_a_line(void **state)
{
    struct tool_result result;
    size_t lines = 0;

    (void)state;
    TOOL_RUN(&result, STAT, "--json", "0.1", "3");
    assert_int_equal(result.status, 0);
    schema_check("stat", result.out);
    for (char *line = strtok(result.out, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *whole = test_parse(line);

        test_expect_keys(whole, whole_keys);
        json_decref(whole);
        lines++;
    }
    assert_int_equal(lines, 3);
    tool_forget(&result);
}

static void test_hooks_have_their_schema(void **state)
{
    static const struct key keys[] = {{"schema", S}, {"tool_version", S}, {"hooks", A}, {NULL, I}};
    static const struct key hook_keys[] = {
        {"symbol", S}, {"room", S}, {"role", S}, {"text", S}, {NULL, I}};
    struct tool_result result;
    bool has_alloc = false;
    json_t *whole;
    json_t *hook;
    size_t i;

    (void)state;
    TOOL_RUN(&result, STAT, "hooks", "--json");
    assert_int_equal(result.status, 0);
    schema_check("hooks", result.out);
    whole = test_parse(result.out);
    test_expect_keys(whole, keys);
    json_array_foreach(json_object_get(whole, "hooks"), i, hook)
    {
        test_expect_keys(hook, hook_keys);
        has_alloc |=
            strcmp(json_string_value(json_object_get(hook, "symbol")), "cuMemAlloc_v2") == 0;
    }
    assert_true(has_alloc);
    json_decref(whole);
    tool_forget(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_types_and_order_are_the_schemas),
        cmocka_unit_test(test_figures_are_the_ledgers),
        cmocka_unit_test(test_foreign_bytes_stay_text),
        cmocka_unit_test(test_no_limit_and_no_group_are_null),
        cmocka_unit_test(test_stream_is_an_object_a_line),
        cmocka_unit_test(test_hooks_have_their_schema),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
