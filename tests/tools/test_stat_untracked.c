/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat's OVERHEAD and UNTRACKED: what NVML says of a process against what its ledger does,
 * and that nothing fails where NVML says nothing. The test itself holds memory of the simulated
 * GPU, and the ledgers, which are made by hand, are this process's own: it has the locks.
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

enum { TEST_GPU = 1 }; /* GPU 0 for the program that the ledger is about */

static CUdevice test_device;
static uint64_t test_figure_bytes; /* NVML's, for this process */

/* What is charged leaves `untracked_mib` of the figure unexplained, beside 8 MiB that the figure
 * does not have. */
static void test_add_ledger(int untracked_mib, enum gpulimit_truth truth,
                            void (*change)(struct fixture *fixture), bool is_live)
{
    struct gpulimit_device *device;
    struct fixture fixture;
    CUuuid uuid;
    char *end;

    assert_int_equal(cuDeviceGetUuid(&uuid, test_device), CUDA_SUCCESS);
    fixture_open(&fixture, 3);
    device = fixture_add_device(&fixture, 0);
    end = device->gpu_uuid + sprintf(device->gpu_uuid, "GPU");
    for (int i = 0; i < 16; i++) {
        end += sprintf(end, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       (unsigned int)(unsigned char)uuid.bytes[i]);
    }
    device->hidden_bytes = 8 * FIXTURE_MIB;
    device->charged_bytes = test_figure_bytes + device->hidden_bytes -
                            (uint64_t)untracked_mib * FIXTURE_MIB; /* wraps there and back */
    device->peak_bytes = device->charged_bytes;
    device->overhead_bytes = 64 * FIXTURE_MIB;
    device->truth_source = truth;
    if (change) {
        change(&fixture);
    }
    folder_add(&fixture, "1", is_live);
}

static int test_set_up(void **state)
{
    CUcontext context;
    CUdeviceptr pointer;

    folder_open(state);
    setenv("LD_LIBRARY_PATH", getenv("SIMGPU_FOLDER"), 1);
    if (cuInit(0) || cuDeviceGet(&test_device, TEST_GPU) ||
        cuDevicePrimaryCtxRetain(&context, test_device) || cuCtxSetCurrent(context) ||
        cuMemAlloc_v2(&pointer, 100 * FIXTURE_MIB)) {
        return -1;
    }
    test_figure_bytes = simgpu_process_used(TEST_GPU);
    return 0;
}

static int test_tear_down(void **state)
{
    return cuDevicePrimaryCtxReset_v2(test_device) ? -1 : folder_close(state);
}

/* The cells OVERHEAD and UNTRACKED of the only row. */
static void test_expect_cells(const char *overhead, const char *untracked, const char *option)
{
    char cells[2][32];
    struct tool_result result;

    TOOL_RUN(&result, STAT, "-n", "-a", option);
    assert_int_equal(
        sscanf(result.out, "%*s %*s %*s %*s %*s %*s %*s %31s %31s", cells[0], cells[1]), 2);
    assert_string_equal(cells[0], overhead);
    assert_string_equal(cells[1], untracked);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

/* `is_known` false: null. */
static void test_expect_json(bool is_known, int64_t untracked_bytes, const char *truth)
{
    struct tool_result result;
    json_t *whole;
    const json_t *device;
    const json_t *untracked;

    TOOL_RUN(&result, STAT, "--json", "-a");
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    schema_check("stat", result.out);
    whole = json_loads(result.out, 0, NULL);
    assert_int_equal(json_unpack(whole, "{s:[{s:[o]}]}", "processes", "devices", &device), 0);
    untracked = json_object_get(device, "untracked_bytes");
    assert_int_equal(json_is_integer(untracked), is_known);
    assert_int_equal(json_is_null(untracked), !is_known);
    assert_int_equal(json_integer_value(untracked), untracked_bytes);
    assert_string_equal(json_string_value(json_object_get(device, "truth_source")), truth);
    json_decref(whole);
    tool_forget(&result);
}

static void test_table_has_both_between_peak_and_allocs(void **state)
{
    static const char head[] =
        " USED LIMIT USE% PEAK OVERHEAD UNTRACKED ALLOCS DENIED AGE COMMAND\n";
    struct tool_result result;
    char row[128];

    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, NULL, true);
    TOOL_RUN(&result, STAT);
    assert_non_null(strstr(result.out, head));
    snprintf(row, sizeof(row),
             " %" PRIu64 "M 1024M  %" PRIu64 "%% %" PRIu64
             "M      64M        2M      1      0  3s python train.py\n",
             test_figure_bytes / FIXTURE_MIB + 6,
             (test_figure_bytes / FIXTURE_MIB + 6) * 100 / 1024,
             test_figure_bytes / FIXTURE_MIB + 6);
    assert_non_null(strstr(result.out, row));
    tool_forget(&result);
    test_expect_json(true, 2 * FIXTURE_MIB, "nvml");
}

static void test_nothing_untracked_is_0(void **state)
{
    (void)state;
    test_add_ledger(0, GPULIMIT_TRUTH_DELTA, NULL, true);
    test_expect_cells("64M", "0B", "-a");
    test_expect_json(true, 0, "delta");
}

static void test_more_charged_than_held_is_negative(void **state)
{
    (void)state;
    test_add_ledger(-3, GPULIMIT_TRUTH_NVML, NULL, true);
    test_expect_cells("64M", "-3M", "-a");
    test_expect_cells("67108864", "-3145728", "-b");
    test_expect_json(true, -3 * (int64_t)FIXTURE_MIB, "nvml");
}

/* As for a container's process without NVML, looked at from the host. */
static void test_overhead_that_nobody_measures_is_untracked(void **state)
{
    (void)state;
    test_add_ledger(64, GPULIMIT_TRUTH_OFF, NULL, true);
    test_expect_cells("-", "64M", "-a");
    test_expect_json(true, 64 * (int64_t)FIXTURE_MIB, "off");
}

/* ---- where nobody knows ---- */

static void test_no_nvml_is_no_failure(void **state)
{
    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, NULL, true);
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    test_expect_cells("64M", "-", "-a");
    test_expect_json(false, 0, "nvml");
}

static void test_process_without_a_context_is_not_listed(void **state)
{
    CUcontext context;

    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, NULL, true);
    assert_int_equal(cuDevicePrimaryCtxReset_v2(test_device), CUDA_SUCCESS);
    test_expect_cells("64M", "-", "-a");
    test_expect_json(false, 0, "nvml");
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, test_device), CUDA_SUCCESS);
}

static void test_name_another_gpu(struct fixture *fixture)
{
    fixture->devices[0].gpu_index = TEST_GPU; /* the right index, and a GPU that is not there */
    strcpy(fixture->devices[0].gpu_uuid, "GPU-0000abc0-1111-2222-3333-444444444444");
}

static void test_gpu_is_found_by_uuid_alone(void **state)
{
    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, test_name_another_gpu, true);
    test_expect_json(false, 0, "nvml");
}

static void test_end(struct fixture *fixture)
{
    fixture->header->ended_time_ns = 1;
    fixture->header->pid = getpid(); /* a number that NVML knows */
}

static void test_ended_process_is_not_asked_for(void **state)
{
    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, test_end, false);
    test_expect_cells("64M", "-", "-a");
}

static void test_count_allocations(struct fixture *fixture)
{
    fixture->header->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
}

static void test_counting_requests_leaves_nothing_to_compare(void **state)
{
    struct tool_result result;

    (void)state;
    test_add_ledger(2, GPULIMIT_TRUTH_NVML, test_count_allocations, true);
    test_expect_cells("64M", "-", "-a");
    TOOL_RUN(&result, STAT, "allocs");
    assert_string_equal(result.out, ""); /* overhead is not charged */
    tool_forget(&result);
}

/* ---- other NVMLs than the simulated one ---- */

static void test_use_nvml(const char *variable)
{
    char number[32];

    folder_add_nvml(getenv(variable));
    snprintf(number, sizeof(number), "%d", getpid());
    setenv("SMALL_NVML_PID", number, 1);
    snprintf(number, sizeof(number), "%" PRIu64, test_figure_bytes);
    setenv("SMALL_NVML_BYTES", number, 1);
    setenv("SMALL_NVML_MOVES", "0", 1);
}

static void test_every_list_of_nvmls_is_read(void **state)
{
    static const char *const variables[] = {"SMALL_NVML_1", "SMALL_NVML_2", "SMALL_NVML_3"};

    (void)state;
    test_add_ledger(5, GPULIMIT_TRUTH_NVML, NULL, true);
    for (size_t i = 0; i < 3; i++) {
        test_use_nvml(variables[i]);
        test_expect_json(true, 5 * (int64_t)FIXTURE_MIB, "nvml");
    }
}

static void test_figure_that_the_driver_does_not_tell_is_unknown(void **state)
{
    (void)state;
    test_add_ledger(5, GPULIMIT_TRUTH_NVML, NULL, true);
    test_use_nvml("SMALL_NVML_2");
    setenv("SMALL_NVML_BYTES", "unknown", 1);
    test_expect_json(false, 0, "nvml");
}

static void test_figure_counts_only_while_the_ledger_rests(void **state)
{
    char path[128];
    char offset[32];

    (void)state;
    test_add_ledger(5, GPULIMIT_TRUTH_NVML, NULL, true);
    test_use_nvml("SMALL_NVML_2");
    snprintf(path, sizeof(path), "%s/gpulimit.1", folder_get_path());
    setenv("SMALL_NVML_LEDGER", path, 1);
    snprintf(offset, sizeof(offset), "%zu",
             GPULIMIT_DEVICES_OFFSET + offsetof(struct gpulimit_device, charged_bytes));
    setenv("SMALL_NVML_OFFSET", offset, 1);
    setenv("SMALL_NVML_MOVES", "1", 1);
    test_expect_json(true, 4 * (int64_t)FIXTURE_MIB, "nvml");
    setenv("SMALL_NVML_MOVES", "1000", 1);
    test_expect_json(false, 0, "nvml");
}

#define TEST(_function) cmocka_unit_test_setup_teardown(_function, test_set_up, test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_table_has_both_between_peak_and_allocs),
        TEST(test_nothing_untracked_is_0),
        TEST(test_more_charged_than_held_is_negative),
        TEST(test_overhead_that_nobody_measures_is_untracked),
        TEST(test_no_nvml_is_no_failure),
        TEST(test_process_without_a_context_is_not_listed),
        TEST(test_gpu_is_found_by_uuid_alone),
        TEST(test_ended_process_is_not_asked_for),
        TEST(test_counting_requests_leaves_nothing_to_compare),
        TEST(test_every_list_of_nvmls_is_read),
        TEST(test_figure_that_the_driver_does_not_tell_is_unknown),
        TEST(test_figure_counts_only_while_the_ledger_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
