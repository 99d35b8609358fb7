/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat on a ledger that the library itself keeps: this test is an ordinary CUDA program,
 * run under libgpulimit.so on a simulated GPU, and what the tool says of it has to agree with the
 * GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema_check.h"
#include "simgpu.h"
#include "tool_run.h"

#define STAT "gpulimit-stat"

#define TEST_MANAGED_BYTES (20 * FIXTURE_MIB)

static char test_pid[16];

/* Where memory is asked for that a test looks for by this name. */
__attribute__((noinline)) static int test_hoard(CUdeviceptr *pointer)
{
    int result = (int)cuMemAlloc_v2(pointer, 4 * FIXTURE_MIB);

    return result != 0 ? -1 : 0; /* no tail call, which would leave no frame */
}

/* Large and small linear memory, a pool that keeps more than is in use, managed memory, which
 * counts but is in nobody's figure, and streams; then an allocation so late that the library looks
 * at what else there is. */
static int test_set_up(void **state)
{
    CUcontext context;
    CUdeviceptr pointers[5];
    CUstream streams[8];

    folder_open(state);
    unsetenv("LD_PRELOAD"); /* the tool goes without */
    setenv("LD_LIBRARY_PATH", getenv("SIMGPU_FOLDER"), 1);
    snprintf(test_pid, sizeof(test_pid), "%d", getpid());
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc_v2(&pointers[0], 100 * FIXTURE_MIB) || cuMemAlloc_v2(&pointers[1], 1000) ||
        cuMemAllocAsync(&pointers[2], 10 * FIXTURE_MIB, NULL) ||
        cuMemAllocManaged(&pointers[3], TEST_MANAGED_BYTES, CU_MEM_ATTACH_GLOBAL)) {
        return -1;
    }
    for (int i = 0; i < 8; i++) {
        if (cuStreamCreate(&streams[i], CU_STREAM_DEFAULT)) {
            return -1;
        }
    }
    usleep(200000);
    return test_hoard(&pointers[4]);
}

static void test_read_device(const char *const names[], json_int_t figures[])
{
    struct tool_result result;
    json_t *whole;
    const json_t *device;

    TOOL_RUN(&result, STAT, "--json", "-p", test_pid);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    schema_check("stat", result.out);
    whole = json_loads(result.out, 0, NULL);
    assert_int_equal(json_unpack(whole, "{s:[{s:[o]}]}", "processes", "devices", &device), 0);
    for (size_t i = 0; names[i]; i++) {
        assert_true(json_is_integer(json_object_get(device, names[i])));
        figures[i] = json_integer_value(json_object_get(device, names[i]));
    }
    json_decref(whole);
    tool_forget(&result);
}

static void test_all_that_the_gpu_holds_is_charged_and_nothing_untracked(void **state)
{
    json_int_t figures[3];

    (void)state;
    test_read_device(
        (const char *const[]){"charged_bytes", "untracked_bytes", "overhead_bytes", NULL}, figures);
    assert_int_equal(figures[0], simgpu_process_used(0) + TEST_MANAGED_BYTES);
    assert_int_equal(figures[1], 0);
    assert_true(figures[2] > 0);
}

static void test_truth_is_nvmls(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "--json", "-p", test_pid);
    assert_non_null(strstr(result.out, "\"truth_source\": \"nvml\""));
    tool_forget(&result);
}

static void test_lines_of_allocs_add_up_to_what_is_charged(void **state)
{
    struct tool_result result;
    json_int_t charged;
    json_int_t sum = 0;
    int lines = 0;

    (void)state;
    test_read_device((const char *const[]){"charged_bytes", NULL}, &charged);
    TOOL_RUN(&result, STAT, "allocs", "-n", "-b", "-p", test_pid);
    for (const char *line = strtok(result.out, "\n"); line; line = strtok(NULL, "\n")) {
        int64_t bytes;

        assert_int_equal(sscanf(line, "%*s %*s %" SCNd64, &bytes), 1);
        sum += bytes;
        lines++;
    }
    assert_true(lines >= 4);
    assert_int_equal(sum, charged);
    tool_forget(&result);
}

static void test_an_allocation_is_put_down_to_the_function_that_asked(void **state)
{
    /* Without libdw a native frame is an address of this program's. */
    const char *site = getenv("TOOLS_HAVE_SYMBOLS") ? " test_hoard\n" : " test_stat_live+0x";
    struct tool_result result;
    const char *stack;

    (void)state;
    TOOL_RUN(&result, STAT, "allocs", "-n", "-p", test_pid);
    assert_non_null(strstr(result.out, site));
    tool_forget(&result);

    TOOL_RUN(&result, STAT, "allocs", "--by", "size", "-v", "-p", test_pid);
    stack = strstr(result.out, "      4M in 1 by\n");
    assert_non_null(stack);
    assert_non_null(strstr(stack, "/test_stat_live+0x"));
    assert_null(strstr(stack, "libgpulimit")); /* the stack begins with who called it */
    tool_forget(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_the_gpu_holds_is_charged_and_nothing_untracked),
        cmocka_unit_test(test_truth_is_nvmls),
        cmocka_unit_test(test_lines_of_allocs_add_up_to_what_is_charged),
        cmocka_unit_test(test_an_allocation_is_put_down_to_the_function_that_asked),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
