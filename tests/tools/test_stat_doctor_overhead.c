/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat doctor on overhead: what its figure rests on, and what NVML sees beyond it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "patient.h"

static void test_change_to_delta(struct fixture *fixture)
{
    fixture->devices[0].truth_source = GPULIMIT_TRUTH_DELTA;
}

static void test_change_to_no_truth(struct fixture *fixture)
{
    fixture->devices[0].truth_source = GPULIMIT_TRUTH_OFF;
}

static void test_change_to_allocations(struct fixture *fixture)
{
    test_change_to_no_truth(fixture);
    fixture->header->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
}

/* The ledger has 64 MiB charged. */
static void test_set_figure(unsigned int mib)
{
    char number[32];

    folder_add_nvml(getenv("SMALL_NVML_2"));
    setenv("SMALL_NVML_PID", patient_pid, 1);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)mib * FIXTURE_MIB);
    setenv("SMALL_NVML_BYTES", number, 1);
}

static void test_overhead_without_nvmls_figure_is_worth_knowing(void **state)
{
    static const struct patient_looks delta = {.has_library = true,
                                               .has_driver = true,
                                               .has_ledger = true,
                                               .change = test_change_to_delta};
    static const struct patient_looks off = {.has_library = true,
                                             .has_driver = true,
                                             .has_ledger = true,
                                             .change = test_change_to_no_truth};
    static const struct patient_looks allocations = {.has_library = true,
                                                     .has_driver = true,
                                                     .has_ledger = true,
                                                     .change = test_change_to_allocations};

    (void)state;
    patient_start(&delta, NULL, NULL);
    PATIENT_EXPECT(
        0,
        "warn @ overhead: 16M on GPU 0, by what the card had less after the calls known to "
        "take it: NVML does not list this process (pid namespace?)\n",
        "     What the driver takes later, as for a kernel's code at its first run, is not "
        "seen.",
        "Nothing is wrong; 1 thing is worth knowing.\n");
    patient_stop();
    patient_start(&off, NULL, NULL);
    PATIENT_EXPECT(0, "warn @ overhead: not measured on GPU 0, as the process has no NVML: ",
                   "     Let it find libnvidia-ml.so.1; ",
                   "Nothing is wrong; 1 thing is worth knowing.\n");
    test_set_figure(64 + 518); /* of a container's process, looked at from the host */
    PATIENT_EXPECT(0, "has no NVML: context, code and streams, 518M now, are not counted\n",
                   "Nothing is wrong; 1 thing is worth knowing.\n");
    patient_stop();
    patient_start(&allocations, NULL, NULL); /* where it does not count */
    PATIENT_EXPECT(0, "ok   @ limit: ", "All is well.\n");
}

static void test_untracked_memory_is_worth_knowing_above_2_mib(void **state)
{
    static const struct patient_looks looks = {
        .has_library = true, .has_driver = true, .has_ledger = true};

    (void)state;
    patient_start(&looks, NULL, NULL);
    test_set_figure(67);
    PATIENT_EXPECT(0,
                   "warn @ untracked: 3M on GPU 0 that NVML sees and the ledger does not explain\n",
                   "     Likely: ", "Nothing is wrong; 1 thing is worth knowing.\n");
    test_set_figure(66);
    PATIENT_EXPECT(0, "ok   @ untracked: 2M on GPU 0: NVML's figure less what is counted\n",
                   "All is well.\n");
    test_set_figure(63);
    PATIENT_EXPECT(0, "ok   @ untracked: -1M on GPU 0: ", "All is well.\n");
}

#define TEST_CASE(_case) cmocka_unit_test_setup_teardown(_case, patient_set_up, patient_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_overhead_without_nvmls_figure_is_worth_knowing),
        TEST_CASE(test_untracked_memory_is_worth_knowing_above_2_mib),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
