/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat doctor on the limit: what it is, who set it, and whether it or the card is in the
 * way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "patient.h"

static void test_expect_after(void (*change)(struct fixture *fixture), int status,
                              const char *const lines[])
{
    struct patient_looks looks = {
        .has_library = true, .has_driver = true, .has_ledger = true, .change = change};

    patient_start(&looks, NULL, NULL);
    patient_expect(status, lines);
}

#define EXPECT_AFTER(_change, _status, ...)                                                        \
    test_expect_after(_change, _status, (const char *const[]){__VA_ARGS__, NULL})

static void test_change_to_a_group(struct fixture *fixture)
{
    strcpy(fixture->header->group, "lab");
    fixture->header->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
}

static void test_who_set_it_and_what_counts(void **state)
{
    (void)state;
    EXPECT_AFTER(test_change_to_a_group, 0,
                 "ok   @ limit: 1024M on GPU 0 (GPU_LIMIT_MB=0=1G, group lab; counted is what the "
                 "program asked for)\n",
                 "All is well.\n");
}

static void test_change_to_an_unnamed_gpu(struct fixture *fixture)
{
    struct gpulimit_device *device = fixture_add_device(fixture, 1);

    device->truth_source = GPULIMIT_TRUTH_NVML;
    device->limit_bytes = device->charged_bytes = 0;
}

static void test_a_gpu_that_is_not_named_may_hold_nothing(void **state)
{
    (void)state;
    EXPECT_AFTER(test_change_to_an_unnamed_gpu, 0, "ok   @ limit: 1024M on GPU 0 (GPU_LIMIT_MB=",
                 "ok   @ limit: nothing is allowed on GPU 1, which is not named in it (GPU_LIMIT_MB"
                 "=0=1G; counted is what the driver holds for the process)\n"
                 "     To allow some, add a limit for it, or for all others with *=.\n",
                 "All is well.\n");
}

static void test_change_to_no_gpu(struct fixture *fixture)
{
    fixture->devices[0].in_use = 0;
}

static void test_no_gpu_is_used_yet(void **state)
{
    (void)state;
    EXPECT_AFTER(test_change_to_no_gpu, 0, "ok   @ limit: no GPU used yet (GPU_LIMIT_MB=0=1G; ",
                 "Nothing is wrong; 1 thing is worth knowing.\n");
}

static void test_change_to_too_much(struct fixture *fixture)
{
    fixture->devices[0].charged_bytes = 1100 * FIXTURE_MIB;
}

static void test_more_than_the_limit_is_wrong(void **state)
{
    (void)state;
    EXPECT_AFTER(test_change_to_too_much, 1, "ok   @ limit: 1024M on GPU 0",
                 "FAIL @ limit: 1100M are held on GPU 0, more than its limit of 1024M\n"
                 "     Code of kernels and stacks that they need come without being asked for. ",
                 "1 thing is wrong.\n");
}

static void test_change_to_a_full_card(struct fixture *fixture)
{
    fixture->devices[0].driver_denials = 3;
}

static void test_change_to_a_full_card_without_limit(struct fixture *fixture)
{
    fixture->devices[0].driver_denials = 1;
    fixture->header->limit_text[0] = '\0';
    fixture->devices[0].limit_bytes = GPULIMIT_NO_LIMIT;
}

static void test_what_the_driver_refused_is_told_apart(void **state)
{
    (void)state;
    EXPECT_AFTER(
        test_change_to_a_full_card, 0,
        "warn @ card: the driver itself refused 3 requests on GPU 0 that the limit had "
        "let pass\n"
        "     The card was full, most likely. See who holds it: gpulimit-stat, nvidia-smi\n",
        "Nothing is wrong; 1 thing is worth knowing.\n");
    patient_stop();
    EXPECT_AFTER(test_change_to_a_full_card_without_limit, 0, "warn @ limit: none: GPU_LIMIT_MB ",
                 "warn @ card: the driver itself refused 1 request on GPU 0 that ",
                 "Nothing is wrong; 2 things are worth knowing.\n");
}

#define TEST_CASE(_case) cmocka_unit_test_setup_teardown(_case, patient_set_up, patient_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_who_set_it_and_what_counts),
        TEST_CASE(test_a_gpu_that_is_not_named_may_hold_nothing),
        TEST_CASE(test_no_gpu_is_used_yet),
        TEST_CASE(test_more_than_the_limit_is_wrong),
        TEST_CASE(test_what_the_driver_refused_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
