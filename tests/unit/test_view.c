/* SPDX-License-Identifier: MIT
 *
 * What the view and the groups choose, order and add up, on ledgers made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "view.h"

#define SECOND UINT64_C(1000000000)

static char test_apis[2][GPULIMIT_API_BYTES + 1] = {"cuMemAlloc", "cuMemAlloc_v2"};

/* Three processes: 30 live on GPU 0 and 1, 20 live on none, 10 stale on GPU 0. */
static struct gpulimit_ledger test_ledgers[3];
static struct gpulimit_ledger *test_list[3];
static struct snapshot test_snapshot;

static void test_make(void)
{
    memset(test_ledgers, 0, sizeof(test_ledgers));
    for (int i = 0; i < 3; i++) {
        static char path[] = "path";

        test_ledgers[i].path = path;
        test_ledgers[i].pid = 30 - 10 * i;
        test_ledgers[i].owner_uid = (uint32_t)(1000 + i);
        test_ledgers[i].created_time_ns = 100 * SECOND;
        test_ledgers[i].created_mono_ns = 5 * SECOND;
        test_ledgers[i].apis = test_apis;
        test_ledgers[i].api_count = 2;
        test_list[i] = &test_ledgers[i];
    }
    test_ledgers[0].device_count = 2;
    test_ledgers[0].devices[0].charged_bytes = 50;
    test_ledgers[0].devices[1] =
        (struct gpulimit_ledger_device){.gpu_index = 1, .charged_bytes = 70};
    test_ledgers[2].device_count = 1;
    test_ledgers[2].devices[0].charged_bytes = 70;
    test_ledgers[2].state = GPULIMIT_STATE_STALE;
    test_snapshot =
        (struct snapshot){.ledgers = test_list, .ledger_count = 3, .time_ns = 160 * SECOND};
}

static void test_rows_are_by_use_then_pid_and_ended_ones_left_out(void **state)
{
    struct view_filter filter = {0};
    struct view view;

    (void)state;
    test_make();
    view_open(&test_snapshot, &filter, &view);
    assert_int_equal(view.row_count, 3);
    assert_int_equal(view.ended_count, 1);
    assert_ptr_equal(view.rows[0].device, &test_ledgers[0].devices[1]);
    assert_ptr_equal(view.rows[1].device, &test_ledgers[0].devices[0]);
    assert_null(view.rows[2].device);
    assert_int_equal(view.ledger_count, 2);
    view_close(&view);

    filter.has_ended = true;
    view_open(&test_snapshot, &filter, &view);
    assert_int_equal(view.row_count, 4);
    assert_int_equal(view.rows[0].ledger->pid, 10);
    assert_int_equal(view.rows[1].ledger->pid, 30);
    assert_int_equal(view.ended_count, 0);
    view_close(&view);
}

static void test_pid_is_known_by_either_namespaces_number(void **state)
{
    const int32_t pid = 4000;
    struct view_filter filter = {.pids = &pid, .pid_count = 1};
    struct view view;

    (void)state;
    test_make();
    test_ledgers[1].lock_pid = 4000;
    view_open(&test_snapshot, &filter, &view);
    assert_int_equal(view.row_count, 1);
    assert_int_equal(view.rows[0].ledger->pid, 20);
    view_close(&view);
}

static void test_use_is_rounded_down_and_never_divides_by_zero(void **state)
{
    struct gpulimit_ledger_device device = {.limit_bytes = 1000, .charged_bytes = 999};

    (void)state;
    assert_int_equal(view_get_use(&device), 99);
    device.charged_bytes = 1000;
    assert_int_equal(view_get_use(&device), 100);
    device.charged_bytes = UINT64_MAX;
    assert_int_equal(view_get_use(&device), 999);
    device.limit_bytes = 0;
    assert_int_equal(view_get_use(&device), 100);
}

static void test_only_what_is_live_and_charged_as_held_is_comparable(void **state)
{
    (void)state;
    test_make();
    assert_false(view_is_comparable(&test_ledgers[0])); /* no number that we know it by */
    test_ledgers[0].lock_pid = 4000;
    assert_true(view_is_comparable(&test_ledgers[0]));
    test_ledgers[0].count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    assert_false(view_is_comparable(&test_ledgers[0]));
    test_ledgers[2].lock_pid = 4000;
    assert_false(view_is_comparable(&test_ledgers[2]));
}

static void test_untracked_is_the_figure_less_what_is_explained(void **state)
{
    struct gpulimit_ledger_device device = {.charged_bytes = 100, .hidden_bytes = 30};

    (void)state;
    assert_int_equal(view_get_explained(&device), 70);
    device.hidden_bytes = 101; /* half-written */
    assert_int_equal(view_get_explained(&device), 0);
    assert_int_equal(view_get_untracked(75, 70), 5);
    assert_int_equal(view_get_untracked(70, 70), 0);
    assert_int_equal(view_get_untracked(70, 75), -5);
    assert_true(view_get_untracked(UINT64_MAX, 0) == INT64_MAX);
    assert_true(view_get_untracked(0, UINT64_MAX) == -INT64_MAX);
}

static void test_a_view_by_itself_knows_nothing_untracked(void **state)
{
    const struct view_filter filter = {.has_ended = true};
    struct view view;

    (void)state;
    test_make();
    view_open(&test_snapshot, &filter, &view);
    for (size_t i = 0; i < view.row_count; i++) {
        assert_false(view.rows[i].has_untracked);
    }
    view_close(&view);
}

static void test_ages_do_not_trust_clocks(void **state)
{
    struct gpulimit_ledger_entry entry = {.born_mono_ns = 15 * SECOND};
    struct view view = {.time_ns = 160 * SECOND};

    (void)state;
    test_make();
    assert_int_equal(view_get_age(&view, &test_ledgers[0]), 60);
    assert_int_equal(view_get_entry_age(&view, &test_ledgers[0], &entry), 50);
    view.time_ns = 1; /* set back */
    assert_int_equal(view_get_age(&view, &test_ledgers[0]), 0);
    assert_int_equal(view_get_entry_age(&view, &test_ledgers[0], &entry), 0);
}

static void test_groups_count_as_their_process_does(void **state)
{
    struct gpulimit_ledger_entry entries[] = {
        {.requested_bytes = 3,
         .committed_bytes = 4,
         .kind = 1,
         .api = 0,
         .born_mono_ns = 5 * SECOND},
        {.requested_bytes = 5,
         .committed_bytes = 8,
         .kind = 1,
         .api = 1,
         .born_mono_ns = 5 * SECOND},
        {.requested_bytes = 1,
         .committed_bytes = 2,
         .kind = 1,
         .api = 0,
         .born_mono_ns = 5 * SECOND},
    };
    const struct groups_filter filter = {.key = GROUPS_BY_API};
    const struct view_filter all = {0};
    struct groups groups;
    struct view view;

    (void)state;
    test_make();
    test_ledgers[0].entries = entries;
    test_ledgers[0].entry_count = 3;
    view_open(&test_snapshot, &all, &view);
    groups_open(&view, &filter, &groups);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.list[0].bytes, 8);
    assert_int_equal(groups.list[1].bytes, 6);
    assert_int_equal(groups.list[1].count, 2);
    assert_int_equal(groups.list[1].largest_bytes, 4);
    assert_int_equal(groups.list[1].oldest_seconds, 60);
    groups_close(&groups);

    test_ledgers[0].count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    groups_open(&view, &filter, &groups);
    assert_int_equal(groups.list[0].bytes, 5);
    assert_int_equal(groups.list[1].bytes, 4);
    groups_close(&groups);
    view_close(&view);
}

static void test_overhead_is_a_group_where_it_is_charged(void **state)
{
    const struct groups_filter filter = {.key = GROUPS_BY_API};
    const struct view_filter all = {0};
    struct groups groups;
    struct view view;

    (void)state;
    test_make();
    test_ledgers[0].devices[0].overhead_bytes = 50;
    view_open(&test_snapshot, &all, &view);
    groups_open(&view, &filter, &groups);
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.list[0].part, GROUPS_OVERHEAD);
    assert_int_equal(groups.list[0].bytes, 50);
    assert_ptr_equal(groups.list[0].device, &test_ledgers[0].devices[0]);
    assert_null(groups.list[0].example);
    groups_close(&groups);

    groups_open(&view, &(struct groups_filter){.key = GROUPS_BY_KIND}, &groups);
    assert_int_equal(groups.count, 0);
    groups_close(&groups);
    groups_open(&view, &(struct groups_filter){.key = GROUPS_BY_API, .min_bytes = 1}, &groups);
    assert_int_equal(groups.count, 0);
    groups_close(&groups);
    test_ledgers[0].count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    groups_open(&view, &filter, &groups);
    assert_int_equal(groups.count, 0);
    groups_close(&groups);
    view_close(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_by_use_then_pid_and_ended_ones_left_out),
        cmocka_unit_test(test_pid_is_known_by_either_namespaces_number),
        cmocka_unit_test(test_use_is_rounded_down_and_never_divides_by_zero),
        cmocka_unit_test(test_only_what_is_live_and_charged_as_held_is_comparable),
        cmocka_unit_test(test_untracked_is_the_figure_less_what_is_explained),
        cmocka_unit_test(test_a_view_by_itself_knows_nothing_untracked),
        cmocka_unit_test(test_ages_do_not_trust_clocks),
        cmocka_unit_test(test_groups_count_as_their_process_does),
        cmocka_unit_test(test_overhead_is_a_group_where_it_is_charged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
