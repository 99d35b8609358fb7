/* SPDX-License-Identifier: MIT
 *
 * What a refusal leaves on disk: reports that are JSON by their schema, and whose sums are what is
 * in use. Where they go and how many there are: test_oom_folder.c. The figures of the books behind
 * them are tested in tests/unit/test_limit_live.c.
 */
#include "oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the started program ---- */

static int play_too_large(void)
{
    expect(role_begin() == 0);
    return oom_refused(MIB(2000));
}

/* Every way from here to the bottom, through one of four at each step, is a stack of its own. */
static int down(unsigned way, unsigned steps);

#define WAY(_name)                                                                                 \
    __attribute__((noinline)) static int _name(unsigned way, unsigned steps)                       \
    {                                                                                              \
        int result = down(way, steps);                                                             \
        __asm__ volatile("# " #_name); /* no tail call, and no two are one */                      \
        return result;                                                                             \
    }
WAY(north)
WAY(east)
WAY(south)
WAY(west)

__attribute__((noinline)) static int down(unsigned way, unsigned steps)
{
    static int (*volatile const ways[])(unsigned, unsigned) = {north, east, south, west};
    CUdeviceptr address;
    if (steps > 0)
        return ways[way % 4](way / 4, steps - 1);
    return cuMemAlloc_v2(&address, 64 << 10) != CUDA_SUCCESS;
}

static int hold_by_many(void)
{
    expect(role_begin() == 0);
    for (unsigned way = 0; way < 4096; way++)
        expect(down(way, 6) == 0);
    return 0;
}

static int play_many(void)
{
    expect(hold_by_many() == 0);
    return oom_refused(MIB(900));
}

static int play_many_in_little(void)
{
    struct rlimit limit = {128 << 10, 128 << 10};
    expect(hold_by_many() == 0);
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return oom_refused(MIB(900));
}

/* Holds 200 MiB, says so, and stays until nobody listens any more. */
static int hold_beside(const int ready[2], const int end[2])
{
    CUdeviceptr address;
    char byte = 0;
    close(end[1]);
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(200)) == CUDA_SUCCESS);
    expect(write(ready[1], &byte, 1) == 1);
    return (int)read(end[0], &byte, 1);
}

static int play_beside(void)
{
    int ready[2], end[2];
    char byte;
    expect(pipe2(ready, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(hold_beside(ready, end));
    expect(read(ready[0], &byte, 1) == 1);
    expect(role_begin() == 0 && oom_refused(MIB(2000)) == 0);
    close(end[1]);
    expect(role_wait(child) == 0);
    printf("%d", (int)child);
    return 0;
}

static int play_second_gpu(void)
{
    CUcontext context;
    expect(cuInit(0) == CUDA_SUCCESS);
    return cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS ? oom_refused(MIB(1)) : 0;
}

static const struct role roles[] = {{"refused", oom_play_refused},
                                    {"too large", play_too_large},
                                    {"many", play_many},
                                    {"many in little", play_many_in_little},
                                    {"beside", play_beside},
                                    {"second gpu", play_second_gpu},
                                    {0}};

/* ---- in the test ---- */

static void test_a_refusal_leaves_a_report_of_all_that_is_known(void **state)
{
    struct stat status;
    (void)state;
    PLAY("refused", "SIMGPU_CONTEXT_MB=64");
    program_assert_ok(&oom_program);
    assert_int_equal(stat(oom_folder, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    oom_load(1);
    assert_string_equal(oom_text_at(NULL, "cause"), "limit");
    assert_int_equal(oom_number("gpu", "index"), 0);
    assert_int_equal(oom_number("gpu", "physical_total_bytes"), MIB(8192));
    assert_int_equal(oom_number("limit", "bytes"), MIB(1024));
    assert_string_equal(oom_text_at("limit", "text"), "1024");
    assert_int_equal(oom_number("request", "bytes"), MIB(700));
    assert_string_equal(oom_text_at("request", "api"), "cuMemAlloc_v2");
    assert_string_equal(oom_text_at("request", "kind"), "linear");
    assert_non_null(strstr(oom_text_at("request", "where"), "test_preload_oom_report+0x"));
    assert_true(oom_frames(json_object_get(oom_report, "request")) >= 3);
    assert_int_equal(oom_number(NULL, "overhead_bytes"), MIB(64));
    assert_int_equal(oom_number("usage", "shortfall_bytes"),
                     oom_number("usage", "used_bytes") + (json_int_t)MIB(700 - 1024));
    assert_int_equal(oom_number("usage", "live_allocations"), 6);
    const json_t *first = json_array_get(json_object_get(oom_report, "live_top"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "bytes")), MIB(300));
    assert_int_equal(json_integer_value(json_object_get(first, "count")), 3);
    assert_true(oom_frames(first) >= 3);
    assert_true(oom_number(NULL, "idle_bytes") > 0); /* of the pool */
    assert_true(oom_has_hint("raise_limit") && oom_has_hint("ask_less"));
    const json_t *command = json_object_get(oom_report, "command");
    assert_int_equal(json_array_size(command), 2);
    assert_string_equal(json_string_value(json_array_get(command, 1)), "refused");
    const json_t *event = json_array_get(json_object_get(oom_report, "recent_events"), 0);
    assert_string_equal(json_string_value(json_object_get(event, "what")), "refused");
    assert_true(json_integer_value(json_object_get(event, "bytes")) == MIB(700));
    assert_non_null(strstr(json_string_value(json_object_get(event, "where")), "oom_report+0x"));
}

static void test_causes_are_told_apart(void **state)
{
    (void)state;
    oom_play("too large", "GPU_LIMIT_VERBOSE=0", "SIMGPU_CONTEXT_MB=0");
    assert_string_equal(oom_text_at(NULL, "cause"), "limit_larger_than_total");
    oom_play("refused", "GPU_LIMIT_MB=740", "SIMGPU_CONTEXT_MB=64");
    assert_string_equal(oom_text_at(NULL, "cause"), "overhead");
    assert_true(oom_has_hint("overhead_stays"));
    oom_play("refused", "SIMGPU_MEMORY_MB=900", "GPU_LIMIT_MB=2048");
    assert_string_equal(oom_text_at(NULL, "cause"), "driver");
    assert_true(oom_has_hint("card_full"));
    oom_play("second gpu", "GPU_LIMIT_MB=7=1024", "SIMGPU_CONTEXT_MB=0");
    assert_string_equal(oom_text_at(NULL, "cause"), "config");
    assert_true(oom_has_hint("name_device"));
}

static void test_without_stacks_or_a_ledger_the_sums_hold_all_the_same(void **state)
{
    (void)state;
    oom_play("refused", "GPU_LIMIT_STACKS=off", "GPU_LIMIT_VERBOSE=0");
    assert_int_equal(json_array_size(json_object_get(oom_report, "live_top")), 0);
    assert_int_equal(oom_number("without_site", "count"), 6);
    assert_int_equal(oom_frames(json_object_get(oom_report, "request")), 0);
    oom_play("refused", "GPU_LIMIT_DIR=/nonexistent", "GPU_LIMIT_VERBOSE=0");
    assert_true(json_array_size(json_object_get(oom_report, "live_top")) > 2);
    assert_true(oom_frames(json_object_get(oom_report, "request")) >= 3);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(oom_report, "command"), 0)),
        "exe"); /* as /proc/self/comm has it */
}

static void test_4096_call_sites_fit(void **state)
{
    (void)state;
    oom_play("many", "GPU_LIMIT_STACKS=native,min:1K", "GPU_LIMIT_VERBOSE=0");
    assert_int_equal(json_array_size(json_object_get(oom_report, "live_top")), 50);
    assert_true(oom_number("others", "sites") > 4000);
    assert_int_equal(json_array_size(json_object_get(oom_report, "recent_events")), 1);
    oom_play("many in little", "GPU_LIMIT_STACKS=native,min:1K", "GPU_LIMIT_VERBOSE=0");
    assert_true(strlen(oom_text) <= 128 << 10);
    assert_true(json_is_true(json_object_get(oom_report, "truncated")));
}

static void test_nothing_of_the_environment_is_in_a_report(void **state)
{
    (void)state;
    oom_play("refused", "API_TOKEN=xyzzy-3141592", "JPY_SESSION_NAME=plugh.ipynb");
    assert_null(strstr(oom_text, "xyzzy"));
    assert_null(strstr(oom_text, "API_TOKEN"));
    assert_null(strstr(oom_text, "plugh"));
    assert_null(strstr(oom_text, "LD_PRELOAD"));
    assert_null(strstr(oom_text, "SIMGPU"));
}

static void test_the_others_on_the_card_are_named(void **state)
{
    (void)state;
    oom_play("beside", "GPU_LIMIT_VERBOSE=0", "SIMGPU_CONTEXT_MB=0");
    const json_t *others = json_object_get(oom_report, "other_processes");
    assert_int_equal(json_array_size(others), 1);
    const json_t *other = json_array_get(others, 0);
    assert_int_equal(json_integer_value(json_object_get(other, "used_bytes")), MIB(200));
    assert_int_equal(json_integer_value(json_object_get(other, "pid")), atoi(oom_program.out));
    assert_string_equal(json_string_value(json_object_get(other, "command")), "exe beside");
}

#define CASE(_test) cmocka_unit_test_setup_teardown(_test, oom_set_up, oom_tear_down)

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        CASE(test_a_refusal_leaves_a_report_of_all_that_is_known),
        CASE(test_causes_are_told_apart),
        CASE(test_without_stacks_or_a_ledger_the_sums_hold_all_the_same),
        CASE(test_4096_call_sites_fit),
        CASE(test_nothing_of_the_environment_is_in_a_report),
        CASE(test_the_others_on_the_card_are_named),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
