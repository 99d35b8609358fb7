/* SPDX-License-Identifier: MIT
 *
 * shim/refusal_later.c and shim/refusal_driver.c: what is said of later refusals, at the end, and
 * of what the driver refused, word for word.
 */
#include "unit.h"

#include "refusal.h"

#include <string.h>

static void assert_more(struct pace_turn turn, const char *expected)
{
    struct text text;
    refusal_tell_more(&text, 0, &turn);
    assert_string_equal(text_string(&text), expected);
}

static void test_later_refusals_are_one_line_with_a_time_of_day(void **state)
{
    (void)state;
    assert_more((struct pace_turn){.count = 17,
                                   .largest_bytes = MIB(512),
                                   .since_time_s = 20000 * 86400 + 43267},
                "gpulimit: refused 17 more requests (largest 512 MiB) on GPU 0 since 12:01:07 "
                "UTC\n");
    assert_more((struct pace_turn){.count = 1, .largest_bytes = 700, .since_time_s = 86399},
                "gpulimit: refused 1 more request (700 bytes) on GPU 0 since 23:59:59 UTC\n");
    assert_more((struct pace_turn){.count = 2, .since_time_s = 86400},
                "gpulimit: refused 2 more requests on GPU 0 since 00:00:00 UTC\n");
}

static void assert_ends(struct refusal_end end, const char *expected)
{
    struct text text;
    text_init(&text);
    refusal_add_end(&text, &end);
    assert_string_equal(text_string(&text), expected);
}

static void test_the_end_is_one_line(void **state)
{
    struct refusal_end end = {.limit_bytes = MIB(1024),
                              .peak_bytes = MIB(1019) + (800u << 10),
                              .limit_text = "1024",
                              .refused = 3,
                              .recovered = 2};
    (void)state;
    assert_ends(end, "gpulimit: GPU 0 peak 1019.8 of 1024 MiB, 3 requests refused (2 later "
                     "succeeded).\n");
    end.device = 3;
    end.peak_bytes = 1000;
    end.refused = 1;
    end.recovered = 0;
    assert_ends(end, "gpulimit: GPU 3 peak 1000 bytes of 1024 MiB, 1 request refused.\n");
    end.driver_refused = 2;
    assert_ends(end, "gpulimit: GPU 3 peak 1000 bytes of 1024 MiB, 1 request refused, and 2 by the "
                     "driver itself.\n");
    end.driver_refused = 0;
    end.peak_bytes = MIB(1250);
    assert_ends(end, "gpulimit: GPU 3 peak 1250 of 1024 MiB (over it by overhead that nobody could "
                     "refuse), 1 request refused.\n");
    end.limit_bytes = 0;
    end.limit_text = "0=1G";
    assert_ends(end, "gpulimit: GPU 3 is not named in GPU_LIMIT_MB=0=1G, 1 request refused.\n");
}

/* 512 MiB that fit the limit, on a card of 80 GiB with 12 MiB free. */
static struct refusal of_a_full_card(void)
{
    return (struct refusal){.api = "cuMemAlloc_v2",
                            .requested_bytes = MIB(512),
                            .need_bytes = MIB(512),
                            .limit_bytes = MIB(1024),
                            .limit_text = "1024",
                            .holders = {.used_bytes = MIB(300)},
                            .knows_card_free = true,
                            .card_free_bytes = MIB(12),
                            .card_total_bytes = MIB(81920),
                            .command = "python3",
                            .pid = 4242};
}

static void assert_driver_says(const struct refusal *refusal, const char *expected)
{
    struct text text;
    refusal_explain_driver(&text, refusal);
    assert_string_equal(text_string(&text), expected);
}

static void test_a_card_that_is_really_full_is_not_put_down_to_the_limit(void **state)
{
    struct refusal refusal = of_a_full_card();
    (void)state;
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0: the card is really full, "
        "12 MiB free of 80 GiB (300 MiB of GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
        "gpulimit:   held by this process 300 MiB; others 79.7 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

static void test_a_driver_that_refuses_with_room_left_has_a_reason_of_its_own(void **state)
{
    struct refusal refusal = of_a_full_card();
    (void)state;
    refusal.card_free_bytes = MIB(40960);
    refusal.asked_by = "train.py:88 forward";
    refusal.tag = "epoch 3";
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0: for a reason of its own, "
        "with 40 GiB free of 80 GiB (300 MiB of GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by train.py:88 forward in \"epoch 3\" (cuMemAlloc_v2) in process 4242 "
        "(python3).\n"
        "gpulimit:   held by this process 300 MiB; others 39.8 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

static void test_what_the_driver_refused_has_a_report_too(void **state)
{
    struct refusal refusal = of_a_full_card();
    (void)state;
    refusal.knows_card_free = false;
    refusal.report_path = "/run/user/1000/gpulimit/oom-4242-1.json";
    assert_driver_says(&refusal,
                       "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0 (300 MiB of "
                       "GPU_LIMIT_MB=1024 in use).\n"
                       "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
                       "gpulimit:   held by this process 300 MiB.\n"
                       "gpulimit:   See who: gpulimit-stat, nvidia-smi\n"
                       "gpulimit:   See the whole story: gpulimit-stat report "
                       "/run/user/1000/gpulimit/oom-4242-1.json\n");
}

static void test_a_card_that_cannot_be_asked_is_not_called_full(void **state)
{
    struct refusal refusal = of_a_full_card();
    (void)state;
    refusal.knows_card_free = false;
    assert_driver_says(&refusal,
                       "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0 (300 MiB of "
                       "GPU_LIMIT_MB=1024 in use).\n"
                       "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
                       "gpulimit:   held by this process 300 MiB.\n"
                       "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

static void test_of_what_nobody_knows_the_size_of_the_card_is_described_and_not_judged(void **state)
{
    struct refusal refusal = of_a_full_card();
    (void)state;
    refusal.api = "cuCtxCreate_v2";
    refusal.what = LIMIT_CONTEXT;
    refusal.requested_bytes = refusal.need_bytes = 0;
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused a context on GPU 0: the card has 12 MiB free "
        "of 80 GiB (300 MiB of GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by cuCtxCreate_v2 in process 4242 (python3).\n"
        "gpulimit:   held by this process 300 MiB; others 79.7 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

static struct neighbours of_six_processes(void)
{
    struct neighbours neighbours = {.named_count = 6, .is_complete = true};
    for (unsigned i = 0; i < 6; i++)
        neighbours.named[i] =
            (struct neighbour){.pid = 17 + (int)i, .bytes = MIB(10240 - i), .command = "trainer"};
    return neighbours;
}

static void test_other_processes_that_hold_the_card_are_named(void **state)
{
    struct refusal refusal = of_a_full_card();
    struct neighbours neighbours = of_six_processes();
    (void)state;
    refusal.neighbours = &neighbours;
    neighbours.named_count = 2;
    neighbours.named[0].bytes = MIB(42189);
    memcpy(neighbours.named[0].command, "python train.py --from \x1b[2J and on", 35);
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0: the card is really full, "
        "12 MiB free of 80 GiB (300 MiB of GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
        "gpulimit:   held by this process 300 MiB; process 17 (python train.py --from ?[2J and ) "
        "41.3 GiB; "
        "process 18 (trainer) 10239 MiB; others, outside gpulimit, 28.5 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
    neighbours.is_complete = false;
    neighbours.named_count = 0;
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0: the card is really full, "
        "12 MiB free of 80 GiB (300 MiB of GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
        "gpulimit:   held by this process 300 MiB; others 79.7 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

static void test_of_many_other_processes_the_smaller_are_one_sum(void **state)
{
    struct refusal refusal = of_a_full_card();
    struct neighbours neighbours = of_six_processes();
    (void)state;
    refusal.neighbours = &neighbours;
    refusal.knows_card_free = false;
    neighbours.others = 3;
    neighbours.others_bytes = MIB(3);
    assert_driver_says(
        &refusal,
        "gpulimit: the driver, not the limit, refused 512 MiB on GPU 0 (300 MiB of "
        "GPU_LIMIT_MB=1024 in use).\n"
        "gpulimit:   asked for by cuMemAlloc_v2 in process 4242 (python3).\n"
        "gpulimit:   held by this process 300 MiB; process 17 (trainer) 10 GiB; process 18 "
        "(trainer) 10239 MiB; "
        "process 19 (trainer) 10238 MiB; process 20 (trainer) 10237 MiB; 5 more processes 20 GiB.\n"
        "gpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_later_refusals_are_one_line_with_a_time_of_day),
        cmocka_unit_test(test_the_end_is_one_line),
        cmocka_unit_test(test_a_card_that_is_really_full_is_not_put_down_to_the_limit),
        cmocka_unit_test(test_a_driver_that_refuses_with_room_left_has_a_reason_of_its_own),
        cmocka_unit_test(test_what_the_driver_refused_has_a_report_too),
        cmocka_unit_test(test_a_card_that_cannot_be_asked_is_not_called_full),
        cmocka_unit_test(test_other_processes_that_hold_the_card_are_named),
        cmocka_unit_test(test_of_many_other_processes_the_smaller_are_one_sum),
        cmocka_unit_test(
            test_of_what_nobody_knows_the_size_of_the_card_is_described_and_not_judged),
    };
    return cmocka_run_group_tests_name("refusal_later", tests, NULL, NULL);
}
