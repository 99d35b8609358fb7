/* SPDX-License-Identifier: MIT
 *
 * shim/refusal.c: what a refusal says, word for word, as it is read at 2 a.m.
 */
#include "unit.h"

#include "refusal.h"

/* 512 MiB more than 900 of 1024, as in the README. */
static struct refusal of_a_batch(void)
{
    return (struct refusal){.api = "cuMemAlloc_v2",
                            .requested_bytes = MIB(512),
                            .used_bytes = MIB(900),
                            .limit_bytes = MIB(1024),
                            .limit_text = "1024",
                            .knows_card_free = true,
                            .card_free_bytes = MIB(71783),
                            .command = "python3",
                            .pid = 4242,
                            .has_ledger = true};
}

static void assert_says(const struct refusal *refusal, const char *expected)
{
    struct text text;
    refusal_explain(&text, refusal);
    assert_string_equal(text_string(&text), expected);
}

static void test_it_says_who_asked_and_what_to_do(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 900 MiB of the limit of 1024 MiB in use, 124 MiB left "
        "(GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an ordinary "
        "CUDA out-of-memory error.\n"
        "gpulimit:   The GPU itself still has 70.2 GiB free: only the limit stopped this.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1412 or more, or ask for less (a smaller "
        "batch).\n"
        "gpulimit:   See who holds the memory: gpulimit-stat allocs -p 4242\n");
}

static void test_what_is_not_known_is_not_said(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.knows_card_free = false;
    refusal.has_ledger = false;
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 900 MiB of the limit of 1024 MiB in use, 124 MiB left "
        "(GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an ordinary "
        "CUDA out-of-memory error.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1412 or more, or ask for less (a smaller "
        "batch).\n");
}

static void test_a_setting_is_not_made_smaller_by_a_smaller_batch(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.api = "cuCtxSetLimit";
    refusal.what = LIMIT_SETTING;
    refusal.requested_bytes = MIB(16632);
    refusal.knows_card_free = false;
    refusal.has_ledger = false;
    assert_says(&refusal,
                "gpulimit: refused 16.3 GiB on GPU 0: larger than the whole limit of 1024 MiB, so "
                "it can never succeed (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuCtxSetLimit in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n"
                "gpulimit:   To let it pass, set GPU_LIMIT_MB to 17532 or more, or ask for less (a "
                "smaller stack, heap or printf buffer).\n");
}

static void test_a_context_that_is_too_large_has_two_ways_out(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.api = "cuDevicePrimaryCtxRetain";
    refusal.what = LIMIT_CONTEXT;
    refusal.requested_bytes = MIB(518);
    refusal.used_bytes = 0;
    refusal.limit_bytes = MIB(256);
    refusal.limit_text = "256";
    refusal.has_ledger = false;
    refusal.knows_card_free = false;
    assert_says(
        &refusal,
        "gpulimit: refused a context of 518 MiB on GPU 0: larger than the whole limit of 256 MiB, "
        "so it can never succeed (GPU_LIMIT_MB=256).\n"
        "gpulimit:   asked for by cuDevicePrimaryCtxRetain in process 4242 (python3), which got an "
        "ordinary CUDA out-of-memory error.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 518 or more, or "
        "GPU_LIMIT_COUNT=allocations, which counts what the program allocates and nothing else.\n");
}

static void test_overhead_is_named_where_there_is_any(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.overhead_bytes = MIB(518);
    refusal.knows_card_free = false;
    refusal.what = LIMIT_STREAM;
    refusal.requested_bytes = 0;
    refusal.used_bytes = MIB(1026);
    refusal.has_ledger = false;
    assert_says(&refusal,
                "gpulimit: refused a stream on GPU 0: 1026 MiB of the limit of 1024 MiB in use, 0 "
                "bytes left (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n"
                "gpulimit:   Of what is in use, 518 MiB is overhead that the driver takes: "
                "contexts, code, stacks, streams.\n"
                "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1026 or more, or "
                "GPU_LIMIT_COUNT=allocations, which counts what the program allocates and nothing "
                "else, or ask for less (fewer streams).\n");
}

static void test_a_device_that_is_not_named_has_no_larger_limit_to_offer(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.device = 1;
    refusal.limit_bytes = 0;
    refusal.limit_text = "0=1G";
    assert_says(&refusal, "gpulimit: refused 512 MiB on GPU 1: this GPU is not named in "
                          "GPU_LIMIT_MB=0=1G, so none of its memory is allowed.\n"
                          "gpulimit:   To allow some, add a limit for it, or for all others with "
                          "\"*=\".\n");
}

static void test_no_limit_could_be_large_enough_for_a_size_that_wraps(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    refusal.requested_bytes = UINT64_MAX;
    refusal.knows_card_free = false;
    assert_says(&refusal,
                "gpulimit: refused 16 EiB on GPU 0: larger than the whole limit of 1024 MiB, so it "
                "can never succeed (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_who_asked_and_what_to_do),
        cmocka_unit_test(test_what_is_not_known_is_not_said),
        cmocka_unit_test(test_a_setting_is_not_made_smaller_by_a_smaller_batch),
        cmocka_unit_test(test_a_context_that_is_too_large_has_two_ways_out),
        cmocka_unit_test(test_overhead_is_named_where_there_is_any),
        cmocka_unit_test(test_a_device_that_is_not_named_has_no_larger_limit_to_offer),
        cmocka_unit_test(test_no_limit_could_be_large_enough_for_a_size_that_wraps),
    };
    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
