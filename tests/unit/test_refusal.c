/* SPDX-License-Identifier: MIT
 *
 * shim/refusal.c: what the first refusal says, word for word, as it is read at 2 a.m.
 */
#include "unit.h"

#include "refusal.h"

#include <string.h>

/* 512 MiB more than 900 of 1024. */
static struct refusal of_a_batch(void)
{
    return (struct refusal){.api = "cuMemAlloc_v2",
                            .requested_bytes = MIB(512),
                            .need_bytes = MIB(512),
                            .limit_bytes = MIB(1024),
                            .limit_text = "1024",
                            .holders = {.used_bytes = MIB(900)},
                            .knows_card_free = true,
                            .card_free_bytes = MIB(71783),
                            .command = "python3",
                            .pid = 4242,
                            .has_ledger = true};
}

/* The same, when nothing is known but what the gate itself knows. */
static struct refusal of_little(void)
{
    struct refusal refusal = of_a_batch();
    refusal.knows_card_free = false;
    refusal.has_ledger = false;
    return refusal;
}

/* What a person reads who gave the library everything that it can know. */
static struct refusal of_all(void)
{
    struct refusal refusal = of_a_batch();
    refusal.asked_by = "train.py:88 forward";
    refusal.tag = "epoch 3";
    refusal.holders = (struct limit_holders){0};
    limit_holders_add(&refusal.holders, "model.py:31 load_state_dict", MIB(500), 12);
    limit_holders_add(&refusal.holders, "data.py:7 batch", MIB(120), 1);
    limit_holders_add(&refusal.holders, "optim.py:4 step", MIB(60), 2);
    limit_holders_add(&refusal.holders, "a.py:1 f", MIB(1), 1);
    limit_holders_add(&refusal.holders, "b.py:2 g", MIB(1), 1);
    limit_holders_add_overhead(&refusal.holders, MIB(218));
    refusal.report_path = "/run/user/1000/gpulimit/oom-4242-1.json";
    return refusal;
}

static void assert_says(const struct refusal *refusal, const char *expected)
{
    struct text text;
    refusal_explain(&text, refusal);
    assert_string_equal(text_string(&text), expected);
}

static void test_who_refused_who_asked_who_holds_and_what_to_do_fit_six_lines(void **state)
{
    struct refusal refusal = of_all();
    (void)state;
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 900 MiB of the limit of 1024 MiB in use, 124 MiB left "
        "(GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by train.py:88 forward in \"epoch 3\" (cuMemAlloc_v2) in process 4242 "
        "(python3), which got an ordinary CUDA out-of-memory error.\n"
        "gpulimit:   held by model.py:31 load_state_dict 500 MiB (12 allocations); overhead: "
        "context, code, streams 218 MiB; data.py:7 batch 120 MiB (1 allocation); optim.py:4 step "
        "60 MiB (2 allocations); 2 others 2 MiB.\n"
        "gpulimit:   The GPU itself still has 70.2 GiB free: only the limit stopped this.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1412 or more, or ask for less (a smaller "
        "batch).\n"
        "gpulimit:   See the whole story: gpulimit-stat report "
        "/run/user/1000/gpulimit/oom-4242-1.json\n");
}

static void test_without_a_report_the_ledger_says_who_holds_the_memory(void **state)
{
    struct refusal refusal = of_a_batch();
    (void)state;
    limit_holders_add(&refusal.holders, "cuMemCreate", MIB(24), 3);
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 924 MiB of the limit of 1024 MiB in use, 100 MiB left "
        "(GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an ordinary "
        "CUDA out-of-memory error.\n"
        "gpulimit:   held by cuMemCreate 24 MiB (3 allocations).\n"
        "gpulimit:   The GPU itself still has 70.2 GiB free: only the limit stopped this.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1436 or more, or ask for less (a smaller "
        "batch).\n"
        "gpulimit:   See who holds the memory: gpulimit-stat allocs -p 4242\n");
}

static void test_what_is_not_known_is_not_said(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 900 MiB of the limit of 1024 MiB in use, 124 MiB left "
        "(GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an ordinary "
        "CUDA out-of-memory error.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1412 or more, or ask for less (a smaller "
        "batch).\n");
}

static void test_a_small_request_says_what_it_would_have_taken(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.requested_bytes = MIB(1);
    refusal.need_bytes = MIB(2);
    refusal.holders.used_bytes = MIB(1023);
    assert_says(&refusal,
                "gpulimit: refused 1 MiB, which takes up to 2 MiB, on GPU 0: 1023 MiB of the limit "
                "of 1024 MiB in use, 1 MiB left (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n"
                "gpulimit:   To let it pass, set GPU_LIMIT_MB to 1025 or more, or ask for less (a "
                "smaller batch).\n");
}

static void test_room_that_has_come_since_is_not_called_a_lack_of_it(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.holders.used_bytes = MIB(100);
    assert_says(
        &refusal,
        "gpulimit: refused 512 MiB on GPU 0: 100 MiB of the limit of 1024 MiB in use, 924 MiB left "
        "by now (GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an ordinary "
        "CUDA out-of-memory error.\n"
        "gpulimit:   There is room by now: a second try can pass.\n");
}

static void test_a_card_that_is_full_too_is_not_left_out(void **state)
{
    struct refusal refusal = of_a_batch();
    struct text text;
    (void)state;
    refusal.card_free_bytes = MIB(100);
    refusal_explain(&text, &refusal);
    assert_non_null(strstr(text_string(&text), "gpulimit:   The GPU itself has 100 MiB free: "
                                               "without the limit it would not fit either.\n"));
}

static void test_a_setting_is_not_made_smaller_by_a_smaller_batch(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.api = "cuCtxSetLimit";
    refusal.what = LIMIT_SETTING;
    refusal.requested_bytes = refusal.need_bytes = MIB(16632);
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
    struct refusal refusal = of_little();
    (void)state;
    refusal.api = "cuDevicePrimaryCtxRetain";
    refusal.what = LIMIT_CONTEXT;
    refusal.requested_bytes = refusal.need_bytes = MIB(518);
    refusal.holders.used_bytes = 0;
    refusal.limit_bytes = MIB(256);
    refusal.limit_text = "256";
    assert_says(
        &refusal,
        "gpulimit: refused a context of 518 MiB on GPU 0: larger than the whole limit of 256 MiB, "
        "so it can never succeed (GPU_LIMIT_MB=256).\n"
        "gpulimit:   asked for by cuDevicePrimaryCtxRetain in process 4242 (python3), which got an "
        "ordinary CUDA out-of-memory error.\n"
        "gpulimit:   To let it pass, set GPU_LIMIT_MB to 518 or more, or "
        "GPU_LIMIT_COUNT=allocations, which counts what the program allocates and nothing else.\n");
}

static void test_overhead_that_leaves_too_little_is_named_as_the_cause(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.holders = (struct limit_holders){0};
    limit_holders_add_overhead(&refusal.holders, MIB(618));
    assert_says(&refusal,
                "gpulimit: refused 512 MiB on GPU 0: 618 MiB of the limit of 1024 MiB in use, 406 "
                "MiB left (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n"
                "gpulimit:   held by overhead: context, code, streams 618 MiB.\n"
                "gpulimit:   Freeing memory cannot help, as overhead stays. To let it pass, set "
                "GPU_LIMIT_MB to 1130 or more, or GPU_LIMIT_COUNT=allocations, which counts what "
                "the program allocates and nothing else, or ask for less (a smaller batch).\n");
}

static void test_overhead_that_would_make_no_room_uncounted_is_no_way_out(void **state)
{
    struct refusal refusal = of_little();
    struct text text;
    (void)state;
    refusal.holders = (struct limit_holders){0};
    limit_holders_add(&refusal.holders, "cuMemAlloc, cuMemAllocPitch", MIB(300), 3);
    limit_holders_add_overhead(&refusal.holders, MIB(618));
    refusal_explain(&text, &refusal); /* of 512 MiB: 724 of 1024 are left to allocations */
    assert_non_null(strstr(text_string(&text), "or GPU_LIMIT_COUNT=allocations, which counts"));
    limit_holders_add(&refusal.holders, "cuMemAllocManaged", MIB(213), 1);
    refusal_explain(&text, &refusal); /* 511 */
    assert_non_null(strstr(text_string(&text),
                           "gpulimit:   Freeing memory cannot help, as overhead stays. To let it "
                           "pass, set GPU_LIMIT_MB to 1643 or more, or ask for less (a smaller "
                           "batch).\n"));
}

static void test_a_stream_that_brought_the_device_over_its_limit_needs_no_size(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.api = "cuStreamCreate";
    refusal.what = LIMIT_STREAM;
    refusal.requested_bytes = refusal.need_bytes = 0;
    refusal.holders = (struct limit_holders){0};
    limit_holders_add(&refusal.holders, "cuMemAlloc, cuMemAllocPitch", MIB(508), 1);
    limit_holders_add_overhead(&refusal.holders, MIB(518));
    assert_says(&refusal,
                "gpulimit: refused a stream on GPU 0: 1026 MiB of the limit of 1024 MiB in use, 0 "
                "bytes left (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuStreamCreate in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n"
                "gpulimit:   held by overhead: context, code, streams 518 MiB; cuMemAlloc, "
                "cuMemAllocPitch 508 MiB (1 allocation).\n"
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
    struct refusal refusal = of_little();
    (void)state;
    refusal.requested_bytes = refusal.need_bytes = UINT64_MAX;
    assert_says(&refusal,
                "gpulimit: refused 16 EiB on GPU 0: larger than the whole limit of 1024 MiB, so it "
                "can never succeed (GPU_LIMIT_MB=1024).\n"
                "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3), which got an "
                "ordinary CUDA out-of-memory error.\n");
}

static void test_a_phase_is_named_where_no_line_is_known(void **state)
{
    struct refusal refusal = of_little();
    (void)state;
    refusal.requested_bytes = refusal.need_bytes = UINT64_MAX;
    refusal.tag = "a phase that was given more of a name than a line holds";
    assert_says(
        &refusal,
        "gpulimit: refused 16 EiB on GPU 0: larger than the whole limit of 1024 MiB, so it "
        "can never succeed (GPU_LIMIT_MB=1024).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in \"a phase that was given more of a name th\" "
        "in process 4242 (python3), which got an ordinary CUDA out-of-memory error.\n");
}

/* Each of the words that others choose is cut, so that the last line is never what is lost. */
static void test_words_of_any_length_and_kind_leave_six_whole_lines(void **state)
{
    static char endless[4000];
    struct refusal refusal = of_all();
    struct text text;
    unsigned lines = 0;
    (void)state;
    memset(endless, '\n', sizeof endless - 1);
    refusal.asked_by = refusal.command = refusal.limit_text = refusal.report_path = endless;
    refusal.tag = endless;
    for (unsigned i = 0; i < refusal.holders.named_count; i++)
        refusal.holders.named[i] =
            (struct limit_holder){.text = endless, .bytes = UINT64_MAX, .count = UINT64_MAX};
    refusal.holders.others = UINT64_MAX;
    refusal_explain(&text, &refusal);
    for (const char *at = text_string(&text); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, 6);
    assert_int_equal(text.bytes[text.length - 1], '\n');
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_refused_who_asked_who_holds_and_what_to_do_fit_six_lines),
        cmocka_unit_test(test_without_a_report_the_ledger_says_who_holds_the_memory),
        cmocka_unit_test(test_what_is_not_known_is_not_said),
        cmocka_unit_test(test_a_small_request_says_what_it_would_have_taken),
        cmocka_unit_test(test_room_that_has_come_since_is_not_called_a_lack_of_it),
        cmocka_unit_test(test_a_card_that_is_full_too_is_not_left_out),
        cmocka_unit_test(test_a_setting_is_not_made_smaller_by_a_smaller_batch),
        cmocka_unit_test(test_a_context_that_is_too_large_has_two_ways_out),
        cmocka_unit_test(test_overhead_that_leaves_too_little_is_named_as_the_cause),
        cmocka_unit_test(test_overhead_that_would_make_no_room_uncounted_is_no_way_out),
        cmocka_unit_test(test_a_stream_that_brought_the_device_over_its_limit_needs_no_size),
        cmocka_unit_test(test_a_device_that_is_not_named_has_no_larger_limit_to_offer),
        cmocka_unit_test(test_no_limit_could_be_large_enough_for_a_size_that_wraps),
        cmocka_unit_test(test_a_phase_is_named_where_no_line_is_known),
        cmocka_unit_test(test_words_of_any_length_and_kind_leave_six_whole_lines),
    };
    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
