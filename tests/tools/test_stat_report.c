/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat report: of a ledger, of a file, and of two files; and what it says of files that
 * are no reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fixture.h"
#include "schema_check.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

static int test_set_up(void **state)
{
    struct fixture fixture;

    folder_open(state);
    report_fixture_open(&fixture);
    folder_add(&fixture, "1", false);
    return 0;
}

/* A file outside the names of ledgers, so that only those who name it look at it. It goes with the
 * folder: it is called as ledgers are removed by. */
static const char *test_write(const char *name, const char *text)
{
    static char paths[2][512];
    static unsigned int next;
    char *path = paths[next++ % 2];
    FILE *file;

    snprintf(path, sizeof(paths[0]), "%s/%s", folder_get_path(), name);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_expect(const char *const words[], int status, const char *out, const char *err)
{
    struct tool_result result;

    tool_run(words, &result);
    assert_string_equal(result.out, out);
    assert_string_equal(result.err, err);
    assert_int_equal(result.status, status);
    tool_forget(&result);
}

#define EXPECT(_status, _out, _err, ...)                                                           \
    test_expect((const char *const[]){STAT, "report", __VA_ARGS__, NULL}, _status, _out, _err)

#define HEAD                                                                                       \
    "process 4121 (python train.py) ran for 2m05s, under GPU_LIMIT_MB=1024\n"                      \
    "GPU 0: peak 1000 MiB of 1024 MiB (97%), 12 s after the start, held by\n"                      \
    "    640 MiB  model.py:31 load_state_dict (6 allocations)\n"                                   \
    "    128 MiB  model.py:58 forward (3 allocations)\n"                                           \
    "     32 MiB  solver+0x4010 (1 allocation)\n"                                                  \
    "    100 MiB  idle in pools\n"                                                                 \
    "    100 MiB  overhead: context, code, streams\n"                                              \
    "  refused       3 requests for 1536 MiB (2 later succeeded); 1 by the driver\n"               \
    "  in all        1234 allocations, the largest 512 MiB; 1228 frees\n"                          \
    "  live at exit  640 MiB in 6 allocations, most by model.py:31 load_state_dict\n"

#define MARKS                                                                                      \
    "\n"                                                                                           \
    "   AT USED CHANGE  PEAK ALLOCS REFUSED MARK\n"                                                \
    "  20s 700M      - 1000M      8       3 epoch 1\n"                                             \
    "1m45s 740M   +40M  768M      6       0 epoch 2\n"

#define WHOLE                                                                                      \
    HEAD "  over time     \u2587 \u2581\u2582\u2583\u2584\u2585\u2586  2m08s; up to 1024 MiB\n"    \
         "                !         refused\n" MARKS

static void test_the_report_of_a_ledger_is_for_people(void **state)
{
    (void)state;
    EXPECT(0, WHOLE, "", "-p", "4121");
}

static void test_without_utf8_the_bar_is_ascii(void **state)
{
    (void)state;
    setenv("LC_ALL", "C", 1);
    EXPECT(0,
           HEAD "  over time     % _.-=+*  2m08s; up to 1024 MiB\n"
                "                !         refused\n" MARKS,
           "", "-p", "4121");
    setenv("LC_ALL", "C.UTF-8", 1);
}

static json_int_t test_get(json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static void test_add_up(json_t *device, const char *key)
{
    json_t *holders = json_object_get(device, key);
    json_int_t sum = test_get(holders, "idle_bytes") + test_get(holders, "overhead_bytes") +
                     test_get(json_object_get(holders, "others"), "bytes");
    json_t *site;
    size_t i;

    json_array_foreach(json_object_get(holders, "sites"), i, site)
    {
        sum += test_get(site, "bytes");
    }
    assert_int_equal(sum, test_get(holders, "bytes"));
}

static void test_the_same_is_json_and_reads_back(void **state)
{
    struct tool_result result;
    const char *path;
    json_t *device;
    json_t *root;

    (void)state;
    TOOL_RUN(&result, STAT, "report", "-p", "4121", "--json");
    assert_int_equal(result.status, 0);
    schema_check("report", result.out);
    root = json_loads(result.out, 0, NULL);
    assert_non_null(root);
    device = json_array_get(json_object_get(root, "devices"), 0);
    test_add_up(device, "peak");
    test_add_up(device, "end");
    assert_int_equal(json_array_size(json_object_get(device, "marks")), 2);
    json_decref(root);
    path = test_write("gpulimit-run.json", result.out);
    tool_forget(&result);
    EXPECT(0, WHOLE, "", path);
    TOOL_RUN(&result, STAT, "report", path, "--json");
    schema_check("report", result.out);
    tool_forget(&result);
    remove(path);
}

/* Neither tallies nor a history, no limit, killed. */
static void test_of_a_poor_ledger_the_report_says_what_it_can(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 4122;
    fixture_add_device(&fixture, 1)->limit_bytes = GPULIMIT_NO_LIMIT;
    folder_add(&fixture, "2", false);
    EXPECT(0,
           "process 4122 (python train.py) is gone without a word: killed, or crashed\n"
           "GPU 1: peak 128 MiB (no limit), 0.0 s after the start, held by\n"
           "    128 MiB  (unknown)\n"
           "  refused       nothing\n"
           "  in all        3 allocations; 2 frees\n"
           "  live at exit  64 MiB in 1 allocation, most by (unknown)\n",
           "", "-p", "4122");
}

/* A number of a process may have been given again: the last is meant. */
static void test_of_several_processes_with_a_number_the_last_counts(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 5);
    fixture.header->created_time_ns = 1;
    folder_add(&fixture, "0", false);
    EXPECT(0, WHOLE, "", "-p", "4121");
    fixture_open(&fixture, 5);
    folder_add(&fixture, "3", true);
    TOOL_RUN(&result, STAT, "report", "-p", "4121");
    assert_string_equal(result.out, "process 4121 (python train.py) runs\nIt has used no GPU.\n");
    tool_forget(&result);
}

static void test_who_is_not_there_has_no_report(void **state)
{
    (void)state;
    EXPECT(1, "",
           "gpulimit-stat: process 99 has no ledger: it has not used CUDA under libgpulimit.so, or "
           "its ledger has been removed since\n",
           "-p", "99");
}

static char *test_make_report(void)
{
    struct tool_result result;
    char *text;

    TOOL_RUN(&result, STAT, "report", "-p", "4121", "--json");
    text = strdup(result.out);
    tool_forget(&result);
    return text;
}

/* The text with the first occurrence of one word replaced by another. */
static char *test_replace(const char *text, const char *word, const char *other)
{
    const char *at = strstr(text, word);
    char *changed = malloc(strlen(text) + strlen(other) + 1);

    assert_non_null(at);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, other, at + strlen(word));
    return changed;
}

static void test_two_runs_side_by_side(void **state)
{
    char *before = test_make_report();
    char *larger = test_replace(before, "\"bytes\": 134217728", "\"bytes\": 33554432");
    char *other = test_replace(larger, "model.py:58 forward", "conv.py:3 conv2d");
    char *after = test_replace(other, "\"bytes\": 1048576000", "\"bytes\": 947912704");
    const char *a = test_write("gpulimit-a.json", before);
    const char *b = test_write("gpulimit-b.json", after);

    (void)state;
    EXPECT(0,
           "A: process 4121 (python train.py) ran for 2m05s, under GPU_LIMIT_MB=1024\n"
           "B: process 4121 (python train.py) ran for 2m05s, under GPU_LIMIT_MB=1024\n"
           "GPU     A    B CHANGE     % WHAT\n"
           "  0 1000M 904M   -96M -9.6% peak\n"
           "  0  100M 100M      0     - overhead at the peak\n"
           "  0  100M 100M      0     - idle in pools at the peak\n"
           "  0  512M 512M      0     - largest allocation\n"
           "  0  1234 1234      0     - allocations\n"
           "  0     3    3      0     - requests refused\n"
           "  0     2    2      0     - of those, later succeeded\n"
           "  0  640M 640M      0     - live at exit\n"
           "  0  128M   0B  -128M  gone at the peak, by model.py:58 forward\n"
           "  0    0B  32M   +32M   new at the peak, by conv.py:3 conv2d\n",
           "", a, b, "--diff");
    remove(a);
    remove(b);
    free(before);
    free(larger);
    free(other);
    free(after);
}

static void test_garbage_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *word, *other, *reason;
    } cases[] = {
        {"{", "", "is no report: line 2 is no JSON"},
        {"report/1", "report/2",
         "is of schema gpulimit.report/2, not gpulimit.report/1 or "
         "gpulimit.oom/1"},
        {"\"pid\": 4121", "\"pid\": -4121", "\"pid\" is not a whole number from 0"},
        {"\"pid\": 4121", "\"pid\": 99999999999", "\"pid\" is not the number of a process"},
        {"\"python\"", "7", "\"command\" is not an array of texts"},
        {"\"exited\"", "\"dead\"", "\"state\" is not live, exited or stale"},
        {"\"process\"", "\"procs\"", "\"count_mode\" is not process or allocations"},
        {"13:17:01.000Z", "noon", "\"start_time\" is not a time"},
        {"12.345", "-1", "\"after_seconds\" is not a number of seconds"},
        {"671088640", "671088641", "\"peak\" is not the sum of its parts"},
        {"671088640", "9223372036854775807", "\"peak\" is not the sum of its parts"},
        {"671088640", "99999999999999999999", "is no report: line 26 is no JSON"},
        {"\"others\"", "\"rest\"", "\"others\" is not an object"},
        {"\"sites\": [", "\"places\": [", "\"sites\" is not an array"},
        {"\"end\"", "\"over\"", "\"end\" is not an object"},
        {"\"name\": \"epoch 1\"", "\"name\": null", "\"name\" is not a text"},
        {"\"samples\"", "\"examples\"", "\"samples\" is not an array"},
        {"\"limit_bytes\": 1073741824", "\"limit_bytes\": \"1G\"",
         "\"limit_bytes\" is not a whole number from 0"},
    };
    char *text = test_make_report();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *changed = test_replace(text, cases[i].word, cases[i].other);
        const char *path = test_write("gpulimit-bad.json", changed);
        char err[1024];

        snprintf(err, sizeof(err), "gpulimit-stat: %s: %s\n", path, cases[i].reason);
        EXPECT(3, "", err, path);
        remove(path);
        free(changed);
    }
    free(text);
    EXPECT(3, "", "gpulimit-stat: /nonexistent: cannot be read: No such file or directory\n",
           "/nonexistent");
    EXPECT(3, "", "gpulimit-stat: /dev/null: is no report: line 1 is no JSON\n", "/dev/null");
    EXPECT(3, "", "gpulimit-stat: /: cannot be read: Is a directory\n", "/");
}

/* Whatever of it is cut off or damaged: an error or a report, never a crash. */
static void test_no_damage_ends_in_a_crash(void **state)
{
    char *text = test_make_report();
    size_t length = strlen(text);

    (void)state;
    for (size_t i = 0; i < 60; i++) {
        char *damaged = strdup(text);
        struct tool_result result;
        const char *path;

        damaged[i * 2654435761u % length] = "x0}\"]-"[i % 6];
        if (i % 3 == 0) {
            damaged[length * i / 60] = '\0';
        }
        path = test_write("gpulimit-bad.json", damaged);
        TOOL_RUN(&result, STAT, "report", path);
        assert_true(result.status == 3 || (result.status == 0 && result.err[0] == '\0'));
        tool_forget(&result);
        remove(path);
        free(damaged);
    }
    free(text);
}

/* As the library writes it, and a character that acts on terminals. */
static const char test_refusal[] =
    "{\"schema\": \"gpulimit.oom/1\", \"time\": \"2026-11-30T13:17:01.000Z\",\n"
    "\"monotonic_ns\": 9000000000, \"library_version\": \"0.1.0\", \"host\": \"a\",\n"
    "\"pid\": 4242, \"ppid\": 1, \"uid\": 0, \"cgroup\": null,\n"
    "\"command\": [\"python3\", \"train.py\"], \"tag\": \"epoch 3\", \"cause\": \"limit\",\n"
    "\"gpu\": {\"index\": 0, \"uuid\": \"GPU-1\", \"physical_total_bytes\": 8589934592,\n"
    "  \"physical_free_bytes\": 7516192768},\n"
    "\"limit\": {\"bytes\": 1073741824, \"source\": \"GPU_LIMIT_MB\", \"text\": \"1024\",\n"
    "  \"count\": \"process\"},\n"
    "\"usage\": {\"used_bytes\": 943718400, \"peak_bytes\": 943718400,\n"
    "  \"overhead_bytes\": 67108864, \"shortfall_bytes\": 406847488, \"live_allocations\": 57,\n"
    "  \"denials\": 1, \"by_kind\": {KINDS}},\n"
    "\"request\": {\"bytes\": 536870912, \"rounded_bytes\": 536870912, \"kind\": \"linear\",\n"
    "  \"api\": \"cuMemAlloc_v2\", \"what\": \"allocation\", \"thread_id\": 1,\n"
    "  \"thread_name\": \"python3\", \"where\": \"train.py:88 forward\",\n"
    "  \"native_frames\": [{\"module\": \"/srv/libops.so\", \"build_id\": \"abcd\",\n"
    "    \"offset\": \"0x1234\"}],\n"
    "  \"python_frames\": [{\"file\": \"/srv/train.py\", \"line\": 88,\n"
    "    \"function\": \"forward\"},\n"
    "  {\"file\": \"/srv/train.py\", \"line\": 9, \"function\": \"<mod\\u001bule>\"}]},\n"
    "\"live_top\": [\n"
    "  {\"where\": \"model.py:31 load\", \"bytes\": 576716800, \"count\": 1,\n"
    "   \"oldest_age_seconds\": 3, \"native_frames\": [], \"python_frames\": []},\n"
    "  {\"where\": null, \"bytes\": 104857600, \"count\": 1,\n"
    "   \"oldest_age_seconds\": 3, \"native_frames\": [], \"python_frames\": []},\n"
    "  {\"where\": \"model.py:31 load\", \"bytes\": 94371840, \"count\": 1,\n"
    "   \"oldest_age_seconds\": 3, \"native_frames\": [], \"python_frames\": []}],\n"
    "\"others\": {\"sites\": 41, \"bytes\": 68157440, \"count\": 50},\n"
    "\"without_site\": {\"bytes\": 1048576, \"count\": 3}, \"idle_bytes\": 31457280,\n"
    "\"under_way_bytes\": 0, \"overhead_bytes\": 67108864, \"truncated\": false,\n"
    "\"recent_events\": [{\"monotonic_ns\": 9000000000, \"what\": \"refused\",\n"
    "  \"bytes\": 536870912, \"charged_bytes\": 943718400, \"gpu_index\": 0,\n"
    "  \"kind\": \"linear\", \"api\": \"cuMemAlloc_v2\", \"address\": null, \"thread_id\": 1,\n"
    "  \"where\": null, \"tag\": null},\n"
    "  {\"monotonic_ns\": 8750000000, \"what\": \"allocated\",\n"
    "  \"bytes\": 1048576, \"charged_bytes\": 943718400, \"gpu_index\": 0, \"kind\": \"linear\",\n"
    "  \"api\": \"cuMemAlloc_v2\", \"address\": \"0x7f0000000000\", \"thread_id\": 1,\n"
    "  \"where\": \"model.py:31 load\", \"tag\": null}],\n"
    "\"other_processes\": [{\"pid\": 77, \"uid\": 0, \"used_bytes\": 1048576,\n"
    "  \"command\": \"solver\"}],\n"
    "\"hints\": [{\"code\": \"raise_limit\", \"text\": \"To let it pass, set GPU_LIMIT_MB to "
    "1412.\"}]}\n";

/* With all kinds, none of which holds anything. */
static char *test_make_refusal(void)
{
    static const char *const kinds[] = {
#define KIND(_name, _NAME, _text) #_name,
#include "gpulimit/tbl/kinds.def"
    };
    char list[1024] = "";
    char *end = list;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        end += sprintf(end, "%s\"%s\": {\"bytes\": 0, \"count\": 0}", i > 0 ? ", " : "", kinds[i]);
    }
    return test_replace(test_refusal, "KINDS", list);
}

static void test_the_report_of_a_refusal_is_for_people(void **state)
{
    char *refusal = test_make_refusal();
    char *native = test_replace(refusal, "python_frames", "other_frames");
    const char *path = test_write("gpulimit-oom.json", refusal);
    struct tool_result result;

    (void)state;
    schema_check("oom", refusal); /* so that this test is about what there is */
    EXPECT(0,
           "refused 512 MiB on GPU 0 by the limit\n"
           "  in use        900 MiB of 1024 MiB, short by 388 MiB\n"
           "  process       4242 (python3 train.py)\n"
           "  at            2026-11-30T13:17:01.000Z\n"
           "  asked for by  train.py:88 forward\n"
           "  by calling    cuMemAlloc_v2\n"
           "  in phase      epoch 3\n"
           "  called from   /srv/train.py:88 forward\n"
           "                /srv/train.py:9 <mod?ule>\n"
           "held then by\n"
           "    640 MiB  model.py:31 load (2 allocations)\n"
           "    100 MiB  (unknown) (1 allocation)\n"
           "     65 MiB  41 other sites\n"
           "      1 MiB  of no known call site (3 allocations)\n"
           "     30 MiB  idle in pools\n"
           "     64 MiB  overhead: context, code, streams\n"
           "before that, the latest first\n"
           "      0.25 s  allocated 1 MiB by model.py:31 load\n"
           "The GPU itself had 7168 MiB free of 8192 MiB.\n"
           "  of it 1 MiB was held by process 77 (solver)\n"
           "To let it pass, set GPU_LIMIT_MB to 1412.\n",
           "", path);
    TOOL_RUN(&result, STAT, "report", "--diff", path, path);
    assert_int_equal(result.status, 3);
    assert_non_null(strstr(result.err, "is the report of a refusal, not of a run"));
    tool_forget(&result);
    remove(path);
    path = test_write("gpulimit-oom.json", native);
    TOOL_RUN(&result, STAT, "report", path);
    assert_non_null(strstr(result.out, "  called from   libops.so+0x1234\nheld"));
    tool_forget(&result);
    path = test_write("gpulimit-oom.json", "{\"schema\": \"gpulimit.oom/1\", \"hints\": 7}");
    TOOL_RUN(&result, STAT, "report", path);
    assert_int_equal(result.status, 0);
    tool_forget(&result);
    remove(path);
    free(refusal);
    free(native);
}

static void test_the_command_line_is_understood_or_refused(void **state)
{
#define USAGE(_complaint, ...)                                                                     \
    test_expect((const char *const[]){STAT, __VA_ARGS__, NULL}, 2, "",                             \
                "gpulimit-stat: " _complaint "\nTry 'gpulimit-stat --help'.\n")

    (void)state;
    USAGE("report is about processes, -p, or about a file (example: report -p 4121)", "report");
    USAGE("report is about processes, -p, or about a file (example: report -p 4121)", "report",
          "-p", "1", "a.json");
    USAGE("report is about processes, -p, or about a file (example: report -p 4121)", "report",
          "a.json", "b.json");
    USAGE("--diff compares two files, for people (example: report a.json b.json --diff)", "report",
          "--diff", "a.json");
    USAGE("one word too many, 'c'", "report", "--diff", "a", "b", "c");
    USAGE("--diff goes with report", "--diff");
    USAGE("with --json, report is about one process", "report", "--json", "-p", "1,2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(_name) cmocka_unit_test_setup_teardown(_name, test_set_up, folder_close)
        TEST(test_the_report_of_a_ledger_is_for_people),
        TEST(test_without_utf8_the_bar_is_ascii),
        TEST(test_the_same_is_json_and_reads_back),
        TEST(test_of_a_poor_ledger_the_report_says_what_it_can),
        TEST(test_of_several_processes_with_a_number_the_last_counts),
        TEST(test_who_is_not_there_has_no_report),
        TEST(test_two_runs_side_by_side),
        TEST(test_garbage_is_refused_with_the_reason),
        TEST(test_no_damage_ends_in_a_crash),
        TEST(test_the_report_of_a_refusal_is_for_people),
        TEST(test_the_command_line_is_understood_or_refused),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
