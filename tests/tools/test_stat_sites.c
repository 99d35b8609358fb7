/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat on ledgers that say where memory was asked for: groups by site, by Python line and
 * by tag, whole stacks, and the frames in JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema_check.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

#define LIBRARIES "/opt/venv/lib/python3.11/site-packages"
#define MODULE    LIBRARIES "/torch/nn/modules/module.py"

enum { SHIM = 1, RUNTIME, TORCH, SOLVER, MODULES };

static void test_put_modules(struct fixture *fixture)
{
    static const char *const paths[] = {"/opt/gpulimit/lib/libgpulimit.so",
                                        "/opt/cuda/lib64/libcudart.so.12",
                                        LIBRARIES "/torch/lib/libtorch_cuda.so", "/srv/solver"};

    for (uint32_t i = 0; i < MODULES - 1; i++) {
        uint32_t number = fixture_put_module(fixture, paths[i]);

        fixture->modules[i].build_id_bytes = 2;
        fixture->modules[i].build_id[0] = 0xab;
        fixture->modules[i].build_id[1] = (uint8_t)number;
    }
}

/* A stack of PyTorch's: its own files inside, then the given line of the model, then the program.
 */
static void test_put_model(struct fixture *fixture, uint32_t line, const char *function,
                           uint32_t caller)
{
    uint32_t site = fixture_put_site(fixture);

    fixture_put_native(fixture, site, SHIM, 0x100);
    fixture_put_native(fixture, site, RUNTIME, 0x200);
    fixture_put_native(fixture, site, TORCH, 0x3456);
    fixture_put_python(fixture, site, MODULE, "_call_impl", 1518);
    fixture_put_python(fixture, site, "/srv/nets/model.py", function, line);
    fixture_put_python(fixture, site, "/srv/nets/train.py", "<module>", caller);
}

/* Process 4121: two layers, one of them reached from two lines of the program; a solver without
 * Python; allocations without a site, or with one that there is not; a pool's rest and overhead. */
static int test_set_up(void **state)
{
    static const struct {
        uint32_t size_mib, age_seconds, site, api;
        const char *tag;
    } allocations[] = {
        {64, 7230, 1, 0, "epoch 3"}, {32, 3630, 1, 0, "epoch 3"}, {16, 3630, 2, 0, "epoch 4"},
        {10, 30, 3, 0, "epoch 4"},   {8, 30, 4, 0, NULL},         {4, 30, 0, 0, NULL},
        {2, 30, 9999, 1, NULL},
    };
    struct gpulimit_entry *entries;
    struct fixture fixture;
    uint32_t site;

    folder_open(state);
    fixture_open(&fixture, 9000);
    fixture_add_device(&fixture, 0);
    fixture.devices[0].overhead_bytes = 24 * FIXTURE_MIB;
    entries = fixture_add_entries(&fixture, 16);
    fixture_add_sites(&fixture);
    test_put_modules(&fixture);
    test_put_model(&fixture, 31, "load_state_dict", 12);
    test_put_model(&fixture, 31, "load_state_dict", 14);
    test_put_model(&fixture, 58, "forward", 14);
    site = fixture_put_site(&fixture);
    fixture_put_native(&fixture, site, SHIM, 0x100);
    fixture_put_native(&fixture, site, SOLVER, 0x4010);
    for (uint32_t i = 0; i < sizeof(allocations) / sizeof(allocations[0]); i++) {
        fixture_fill_entry(&fixture, &entries[i],
                           GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, allocations[i].api),
                           allocations[i].size_mib, allocations[i].age_seconds);
        entries[i].site = allocations[i].site;
        entries[i].tag = allocations[i].tag ? fixture_put_text(&fixture, allocations[i].tag) : 0;
        entries[i].stream = i < 2 ? fixture_put_text(&fixture, "prefetch") : 0;
        entries[i].address = 0x7f0000000000 + i;
    }
    folder_add(&fixture, "1", true);
    return 0;
}

static void test_expect(const char *const words[], const char *golden)
{
    struct tool_result result;

    tool_run(words, &result);
    assert_string_equal(result.out, golden);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

#define EXPECT(_golden, ...)                                                                       \
    test_expect((const char *const[]){STAT, "allocs", __VA_ARGS__, NULL}, _golden)

/* All of what is charged, and so the pool and the overhead too. */
#define BY_SITE                                                                                    \
    "GPU  PID BYTES COUNT LARGEST OLDEST SITE\n"                                                   \
    "  0 4121  112M     3     64M  2h00m model.py:31 load_state_dict\n"                            \
    "  0 4121   24M     -       -      - (overhead: context, code, streams)\n"                     \
    "  0 4121   10M     1     10M    30s model.py:58 forward\n"                                    \
    "  0 4121    8M     1      8M    30s solver+0x4010\n"                                          \
    "  0 4121    4M     1      4M    30s (unknown, cuMemAlloc_v2)\n"                               \
    "  0 4121    2M     1      2M    30s (unknown, cuMemAllocAsync)\n"

static void test_groups_are_by_site_where_there_are_sites(void **state)
{
    (void)state;
    EXPECT(BY_SITE, "-p", "4121");
    EXPECT(BY_SITE, "--by", "site");
}

static void test_groups_by_python_leave_frameworks_out(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST PYTHON\n"
           "  0 4121  112M     3     64M  2h00m model.py:31 load_state_dict\n"
           "  0 4121   24M     -       -      - (overhead: context, code, streams)\n"
           "  0 4121   12M     2      8M    30s (no Python, cuMemAlloc_v2)\n"
           "  0 4121   10M     1     10M    30s model.py:58 forward\n"
           "  0 4121    2M     1      2M    30s (no Python, cuMemAllocAsync)\n",
           "--by", "python");
}

static void test_groups_are_by_tag_too(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST TAG\n"
           "  0 4121   96M     2     64M  2h00m epoch 3\n"
           "  0 4121   26M     2     16M  1h00m epoch 4\n"
           "  0 4121   14M     3      8M    30s (none)\n",
           "--by", "tag");
}

static void test_groups_are_by_stream_too(void **state)
{
    (void)state;
    EXPECT("GPU  PID BYTES COUNT LARGEST OLDEST STREAM\n"
           "  0 4121   96M     2     64M  2h00m prefetch\n"
           "  0 4121   40M     5     16M  1h00m (none)\n",
           "--by", "stream");
}

static void test_filters_hold_for_sites(void **state)
{
    (void)state;
    EXPECT("  0 4121 117440512     3 67108864  2h00m model.py:31 load_state_dict\n"
           "  0 4121  10485760     1 10485760    30s model.py:58 forward\n",
           "--min-size", "10M", "-n", "-b");
    EXPECT("  0 4121  112M     3     64M  2h00m model.py:31 load_state_dict\n", "--older-than",
           "10m", "-n");
    EXPECT("  0 4121  112M     3     64M  2h00m model.py:31 load_state_dict\n", "--top", "1", "-n");
}

#define STACK(_python)                                                                             \
    "        /opt/gpulimit/lib/libgpulimit.so+0x100\n"                                             \
    "        /opt/cuda/lib64/libcudart.so.12+0x200\n"                                              \
    "        " LIBRARIES "/torch/lib/libtorch_cuda.so+0x3456\n"                                    \
    "        " MODULE ":1518 _call_impl\n" _python

static void test_verbose_shows_whole_stacks(void **state)
{
    (void)state;
    EXPECT(
        "GPU  PID BYTES COUNT LARGEST OLDEST SITE\n"
        "  0 4121  112M     3     64M  2h00m model.py:31 load_state_dict\n"
        "      96M in 2 by\n" STACK(
            "        /srv/nets/model.py:31 load_state_dict\n"
            "        /srv/nets/train.py:12 <module>\n") "      16M in 1 by\n" STACK("        /srv/nets/model.py:31 load_state_dict\n"
                                                                                    "        /srv/nets/train.py:14 <module>\n") "  0 4121   24M     -       -      - (overhead: context, code, streams)\n",
        "-v", "--top", "2");
}

/* By another key, and without headings; what has no stack shows none. */
/* A call by ctypes from a callback of C code: the interpreter twice. Without Python's own frames
 * its modules stay. */
static void test_whole_stacks_leave_the_interpreter_out(void **state)
{
    static const char *const paths[] = {"/usr/lib/libffi.so.8", "/usr/lib/libpython3.11.so.1.0",
                                        "/srv/solver", "/usr/bin/python3.11", "/usr/lib/libc.so.6"};
    static const uint32_t stack[] = {1, 2, 2, 3, 4, 5, 4};
    struct gpulimit_entry *entries;
    struct fixture fixture;
    struct tool_result result;

    (void)state;
    fixture_open(&fixture, 100);
    fixture.header->pid = 4122;
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, 2);
    fixture_add_sites(&fixture);
    for (uint32_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        fixture_put_module(&fixture, paths[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t site = fixture_put_site(&fixture);

        for (uint32_t frame = 0; frame < sizeof(stack) / sizeof(stack[0]); frame++) {
            fixture_put_native(&fixture, site, stack[frame], 0x10 * (frame + 1));
        }
        if (i == 0) {
            fixture_put_python(&fixture, site, "/srv/train.py", "step", 7);
        }
        fixture_fill_entry(&fixture, &entries[i], GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0),
                           i == 0 ? 8 : 4, 30);
        entries[i].site = site;
    }
    folder_add(&fixture, "2", true);
    TOOL_RUN(&result, STAT, "allocs", "-v", "-n", "-p", "4122", "--min-size", "1");
    assert_non_null(strstr(result.out, "train.py:7 step\n"
                                       "      8M in 1 by\n"
                                       "        /usr/lib/libffi.so.8+0x10\n"
                                       "        (2 of the Python interpreter)\n"
                                       "        /srv/solver+0x40\n"
                                       "        (3 of the Python interpreter)\n"
                                       "        /srv/train.py:7 step\n"));
    assert_non_null(strstr(result.out, "      4M in 1 by\n"
                                       "        /usr/lib/libffi.so.8+0x10\n"
                                       "        /usr/lib/libpython3.11.so.1.0+0x20\n"));
    tool_forget(&result);
}

static void test_stacks_of_a_group_may_be_of_several_sites(void **state)
{
    static const char end[] = "  0 4121   14M     3      8M    30s (none)\n"
                              "      8M in 1 by\n"
                              "        /opt/gpulimit/lib/libgpulimit.so+0x100\n"
                              "        /srv/solver+0x4010\n";
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "-v", "-n", "--by", "tag");
    assert_non_null(strstr(result.out, "epoch 4\n      16M in 1 by\n"));
    assert_non_null(strstr(result.out, ":14 <module>\n      10M in 1 by\n"));
    assert_non_null(strstr(result.out, end));
    assert_string_equal(strstr(result.out, end), end);
    tool_forget(&result);
}

static void test_list_names_sites(void **state)
{
    (void)state;
    EXPECT("GPU  PID ADDRESS        SIZE COMMITTED KIND   API           THREAD   AGE SITE\n"
           "  0 4121 0x7f0000000000  64M       64M linear cuMemAlloc_v2   4121 2h00m model.py:31 "
           "load_state_dict\n",
           "-l", "--top", "1");
}

static void test_the_table_fits_a_terminal(void **state)
{
    static const char *const verbs[][3] = {{"--by", "site", NULL}, {"-l", NULL, NULL}};
    struct fixture fixture;
    uint32_t site;

    (void)state;
    fixture_open(&fixture, 9000);
    fixture.header->pid = 4200;
    fixture_add_device(&fixture, 0);
    fixture_fill_entry(&fixture, fixture_add_entries(&fixture, 1),
                       GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 1), 64, 30);
    fixture_add_sites(&fixture);
    site = fixture_put_site(&fixture);
    fixture_put_python(&fixture, site, "/srv/nets/deep/__init__.py",
                       "a_function_with_a_name_that_goes_on_and_on_and_on_as_some_do", 123456);
    ((struct gpulimit_entry *)(void *)(fixture.image + fixture.header->extents[1].offset))->site =
        site;
    folder_add(&fixture, "2", true);
    for (size_t i = 0; i < 2; i++) {
        struct tool_result result;

        TOOL_RUN_ON_TERMINAL(&result, 24, 80, STAT, "allocs", "-p", "4200", verbs[i][0],
                             verbs[i][1]);
        assert_int_equal(result.status, 0);
        assert_non_null(strstr(result.out, "deep/__in"));
        for (const char *line = result.out; *line != '\0';) {
            size_t length = strcspn(line, "\n");

            assert_true(length <= 80);
            line += length + (line[length] == '\n');
        }
        tool_forget(&result);
    }
}

struct key {
    const char *name;
    json_type type;
};

static void test_expect_keys(json_t *object, const struct key *keys)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        assert_non_null(keys->name);
        assert_string_equal(name, keys->name);
        assert_int_equal(json_typeof(value), keys->type);
        keys++;
    }
    assert_null(keys->name);
}

static json_t *test_get_frame(json_t *allocations, size_t allocation, size_t frame)
{
    json_t *site = json_object_get(json_array_get(allocations, allocation), "site");

    return json_array_get(json_object_get(site, "frames"), frame);
}

static const char *test_get_text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void test_json_has_frames_and_tag(void **state)
{
    static const struct key native_keys[] = {{"kind", JSON_STRING},     {"file", JSON_NULL},
                                             {"line", JSON_NULL},       {"function", JSON_NULL},
                                             {"module", JSON_STRING},   {"offset", JSON_STRING},
                                             {"build_id", JSON_STRING}, {NULL, JSON_NULL}};
    static const struct key python_keys[] = {{"kind", JSON_STRING},   {"file", JSON_STRING},
                                             {"line", JSON_INTEGER},  {"function", JSON_STRING},
                                             {"module", JSON_NULL},   {"offset", JSON_NULL},
                                             {"build_id", JSON_NULL}, {NULL, JSON_NULL}};
    struct tool_result result;
    json_t *allocations;
    json_t *whole;
    json_t *frame;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "--json", "-p", "4121");
    schema_check("stat", result.out);
    whole = json_loads(result.out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(whole);
    allocations =
        json_object_get(json_array_get(json_object_get(whole, "processes"), 0), "allocations");
    assert_int_equal(json_array_size(allocations), 7);
    assert_string_equal(test_get_text(json_array_get(allocations, 0), "tag"), "epoch 3");
    frame = test_get_frame(allocations, 0, 2);
    test_expect_keys(frame, native_keys);
    assert_string_equal(test_get_text(frame, "kind"), "native");
    assert_string_equal(test_get_text(frame, "module"), LIBRARIES "/torch/lib/libtorch_cuda.so");
    assert_string_equal(test_get_text(frame, "offset"), "0x3456");
    assert_string_equal(test_get_text(frame, "build_id"), "ab03");
    frame = test_get_frame(allocations, 0, 4);
    test_expect_keys(frame, python_keys);
    assert_string_equal(test_get_text(frame, "kind"), "python");
    assert_string_equal(test_get_text(frame, "file"), "/srv/nets/model.py");
    assert_string_equal(test_get_text(frame, "function"), "load_state_dict");
    assert_int_equal(json_integer_value(json_object_get(frame, "line")), 31);
    assert_null(test_get_frame(allocations, 0, 6));
    for (size_t unknown = 5; unknown < 7; unknown++) {
        assert_null(test_get_frame(allocations, unknown, 0));
        assert_true(json_is_null(json_object_get(json_array_get(allocations, unknown), "tag")));
    }
    json_decref(whole);
    tool_forget(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_by_site_where_there_are_sites),
        cmocka_unit_test(test_groups_by_python_leave_frameworks_out),
        cmocka_unit_test(test_groups_are_by_tag_too),
        cmocka_unit_test(test_groups_are_by_stream_too),
        cmocka_unit_test(test_filters_hold_for_sites),
        cmocka_unit_test(test_verbose_shows_whole_stacks),
        cmocka_unit_test(test_stacks_of_a_group_may_be_of_several_sites),
        cmocka_unit_test(test_list_names_sites),
        cmocka_unit_test(test_json_has_frames_and_tag),
        cmocka_unit_test(test_the_table_fits_a_terminal), /* adds a process; so does the next */
        cmocka_unit_test(test_whole_stacks_leave_the_interpreter_out),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
