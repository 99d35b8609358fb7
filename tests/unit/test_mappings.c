/* SPDX-License-Identifier: MIT
 *
 * shim/mappings.c: memory stays while a handle or a mapping stays, in whatever order they go.
 */
#include "unit.h"

#include "mappings.h"

#define BASE UINT64_C(0x7f0000000000)

static struct mappings mappings;

static int clear(void **state)
{
    (void)state;
    mappings_clear(&mappings);
    return 0;
}

static uint32_t unmap(uint64_t address, uint64_t bytes)
{
    return mappings_unmap_next(&mappings, &address, address + bytes);
}

static void test_released_before_unmapped_dies_with_the_mapping(void **state)
{
    struct mappings_object dead;
    (void)state;
    uint32_t object = mappings_create(&mappings, 5, 77);
    assert_true(mappings_map(&mappings, object, BASE, MIB(32)));
    mappings_release(&mappings, object);
    assert_false(mappings_reap(&mappings, object, &dead));
    assert_int_equal(mappings_find(&mappings, 5), MAPPINGS_NONE);
    assert_int_equal(unmap(BASE, MIB(32)), object);
    assert_true(mappings_reap(&mappings, object, &dead));
    assert_int_equal(dead.entry, 77);
}

static void test_unmapped_before_released_dies_with_the_handle(void **state)
{
    struct mappings_object dead;
    (void)state;
    uint32_t object = mappings_create(&mappings, 5, 77);
    assert_true(mappings_map(&mappings, object, BASE, MIB(32)));
    assert_int_equal(unmap(BASE, MIB(32)), object);
    assert_false(mappings_reap(&mappings, object, &dead));
    mappings_release(&mappings, object);
    assert_true(mappings_reap(&mappings, object, &dead));
}

static void test_two_mappings_and_a_retained_handle_all_count(void **state)
{
    struct mappings_object dead;
    (void)state;
    uint32_t object = mappings_create(&mappings, 5, 77);
    assert_true(mappings_map(&mappings, object, BASE, MIB(32)));
    assert_true(mappings_map(&mappings, object, BASE + MIB(64), MIB(32)));
    mappings_release(&mappings, object);
    assert_int_equal(mappings_find_mapped(&mappings, BASE + MIB(64) + 12345), object);
    assert_true(mappings_retain(&mappings, object, 5));
    assert_int_equal(mappings_find(&mappings, 5), object);
    assert_int_equal(unmap(BASE, MIB(32)), object);
    assert_int_equal(unmap(BASE + MIB(64), MIB(32)), object);
    assert_false(mappings_reap(&mappings, object, &dead));
    mappings_release(&mappings, object);
    assert_true(mappings_reap(&mappings, object, &dead));
}

static void test_a_mapping_without_address_counts_too(void **state)
{
    struct mappings_object dead;
    (void)state;
    uint32_t object = mappings_create(&mappings, 5, 77);
    mappings_hold(&mappings, object);
    assert_true(mappings_map(&mappings, object, BASE, MIB(32)));
    mappings_release(&mappings, object);
    assert_int_equal(unmap(BASE, MIB(32)), object);
    assert_false(mappings_reap(&mappings, object, &dead));
    mappings_let_go(&mappings, object);
    assert_true(mappings_reap(&mappings, object, &dead));
}

static void test_a_handle_handed_out_again_is_another_object(void **state)
{
    (void)state;
    uint32_t first = mappings_create(&mappings, 5, 1);
    assert_true(mappings_map(&mappings, first, BASE, MIB(2)));
    mappings_release(&mappings, first);
    uint32_t second = mappings_create(&mappings, 5, 2);
    assert_int_not_equal(first, second);
    assert_int_equal(mappings_find(&mappings, 5), second);
    assert_int_equal(mappings_find_mapped(&mappings, BASE), first);
}

static void test_one_unmap_covers_several_mappings_and_holes(void **state)
{
    (void)state;
    uint32_t a = mappings_create(&mappings, 1, 1), b = mappings_create(&mappings, 2, 2);
    assert_true(mappings_map(&mappings, a, BASE, MIB(4)));
    assert_true(mappings_map(&mappings, b, BASE + MIB(4), MIB(2)));
    assert_true(mappings_map(&mappings, a, BASE + MIB(20), MIB(2)));
    assert_true(mappings_map(&mappings, b, BASE + MIB(40), MIB(2)));
    uint64_t at = BASE;
    assert_int_equal(mappings_unmap_next(&mappings, &at, BASE + MIB(40)), a);
    assert_int_equal(mappings_unmap_next(&mappings, &at, BASE + MIB(40)), b);
    assert_int_equal(mappings_unmap_next(&mappings, &at, BASE + MIB(40)), a);
    assert_int_equal(mappings_unmap_next(&mappings, &at, BASE + MIB(40)), MAPPINGS_NONE);
    assert_int_equal(mappings.objects[b].maps, 1);
}

static void test_addresses_that_nobody_mapped_are_found_nowhere_and_soon(void **state)
{
    (void)state;
    assert_int_equal(mappings_find_mapped(&mappings, BASE), MAPPINGS_NONE);
    uint32_t object = mappings_create(&mappings, 1, 1);
    assert_true(mappings_map(&mappings, object, BASE, MIB(4)));
    assert_int_equal(mappings_find_mapped(&mappings, BASE + MIB(4)), MAPPINGS_NONE);
    /* 64 TiB above: a walk back over every step to the mapping would take seconds. */
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(mappings_find_mapped(&mappings, BASE + (UINT64_C(64) << 40)),
                         MAPPINGS_NONE);
}

static void test_numbers_are_used_again(void **state)
{
    struct mappings_object dead;
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t object = mappings_create(&mappings, 9, i);
        assert_true(mappings_map(&mappings, object, BASE, MIB(2)));
        mappings_release(&mappings, object);
        assert_int_equal(unmap(BASE, MIB(2)), object);
        assert_true(mappings_reap(&mappings, object, &dead));
        assert_int_equal(dead.entry, i);
    }
    assert_int_equal(mappings.objects_used, 1);
    assert_int_equal(mappings.ranges_used, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_released_before_unmapped_dies_with_the_mapping, clear),
        cmocka_unit_test_setup(test_unmapped_before_released_dies_with_the_handle, clear),
        cmocka_unit_test_setup(test_two_mappings_and_a_retained_handle_all_count, clear),
        cmocka_unit_test_setup(test_a_mapping_without_address_counts_too, clear),
        cmocka_unit_test_setup(test_a_handle_handed_out_again_is_another_object, clear),
        cmocka_unit_test_setup(test_one_unmap_covers_several_mappings_and_holes, clear),
        cmocka_unit_test_setup(test_addresses_that_nobody_mapped_are_found_nowhere_and_soon, clear),
        cmocka_unit_test_setup(test_numbers_are_used_again, clear),
    };
    return cmocka_run_group_tests_name("mappings", tests, NULL, NULL);
}
