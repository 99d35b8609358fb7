/* SPDX-License-Identifier: MIT
 *
 * shim/graphs.c: which executable graph still needs its memory.
 */
#include "unit.h"

#include "graphs.h"

static struct graphs graphs;

static int clear(void **state)
{
    (void)state;
    graphs_clear(&graphs);
    return 0;
}

static bool insert(uint64_t handle, unsigned device, uint64_t bytes)
{
    struct graphs_need need = {.bytes = bytes, .device = device};
    return graphs_insert(&graphs, handle, &need);
}

static void test_a_graph_is_needy_until_it_is_backed(void **state)
{
    (void)state;
    assert_null(graphs_find_needy(&graphs, 7));
    assert_true(insert(7, 1, MIB(64)));
    const struct graphs_need *needy = graphs_find_needy(&graphs, 7);
    assert_non_null(needy);
    assert_int_equal(needy->device, 1);
    assert_int_equal(needy->bytes, MIB(64));
    graphs_back(&graphs, 7);
    assert_null(graphs_find_needy(&graphs, 7));
}

static void test_a_trim_of_its_device_makes_it_needy_again(void **state)
{
    (void)state;
    assert_true(insert(7, 1, MIB(64)));
    graphs_back(&graphs, 7);
    graphs_trim(&graphs, 0);
    assert_null(graphs_find_needy(&graphs, 7));
    graphs_trim(&graphs, 1);
    assert_non_null(graphs_find_needy(&graphs, 7));
}

static void test_another_graph_of_its_device_makes_it_needy_again(void **state)
{
    (void)state;
    assert_true(insert(7, 1, MIB(64)));
    assert_true(insert(8, 0, MIB(64)));
    assert_true(insert(9, 1, MIB(64)));
    graphs_back(&graphs, 7);
    graphs_back(&graphs, 8);
    assert_null(graphs_find_needy(&graphs, 7));
    graphs_back(&graphs, 9);
    assert_non_null(graphs_find_needy(&graphs, 7));
    assert_null(graphs_find_needy(&graphs, 9));
}

static void test_a_destroyed_one_is_forgotten_and_its_place_used_again(void **state)
{
    (void)state;
    for (uint64_t handle = 1; handle <= 10000; handle++) {
        assert_true(insert(handle, 0, MIB(1)));
        graphs_remove(&graphs, handle);
        assert_null(graphs_find_needy(&graphs, handle));
    }
    assert_int_equal(graphs.used, 1);
    graphs_remove(&graphs, 4711);
}

static void test_a_changed_graph_is_needy_again_and_takes_no_other_place(void **state)
{
    (void)state;
    assert_true(insert(7, 0, MIB(64)));
    graphs_back(&graphs, 7);
    assert_true(insert(7, 0, MIB(96)));
    assert_int_equal(graphs_find_needy(&graphs, 7)->bytes, MIB(96));
    assert_int_equal(graphs.used, 1);
}

static void test_a_handle_handed_out_again_is_another_graph(void **state)
{
    (void)state;
    assert_true(insert(7, 0, MIB(64)));
    graphs_back(&graphs, 7);
    graphs_remove(&graphs, 7);
    assert_true(insert(7, 0, MIB(32)));
    assert_int_equal(graphs_find_needy(&graphs, 7)->bytes, MIB(32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_graph_is_needy_until_it_is_backed, clear),
        cmocka_unit_test_setup(test_a_trim_of_its_device_makes_it_needy_again, clear),
        cmocka_unit_test_setup(test_another_graph_of_its_device_makes_it_needy_again, clear),
        cmocka_unit_test_setup(test_a_destroyed_one_is_forgotten_and_its_place_used_again, clear),
        cmocka_unit_test_setup(test_a_changed_graph_is_needy_again_and_takes_no_other_place, clear),
        cmocka_unit_test_setup(test_a_handle_handed_out_again_is_another_graph, clear),
    };
    return cmocka_run_group_tests_name("graphs", tests, NULL, NULL);
}
