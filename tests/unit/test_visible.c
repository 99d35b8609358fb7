/* SPDX-License-Identifier: MIT
 *
 * CUDA_VISIBLE_DEVICES as CUDA reads it, on a machine of three GPUs. That CUDA itself agrees is in
 * tests/preload/test_nvml.c.
 */
#include "visible.h"

#include "unit.h"

#define FIRST    "GPU-51390c91-0000-4500-8a51-6d6770750000"
#define SECOND   "GPU-52390c91-0000-4500-8a51-6d6770750001"
#define THIRD    "GPU-52ff0c91-0000-4500-8a51-6d6770750002"
#define INSTANCE "GPU-0bb1e5a0-1234-5678-9abc-def012345678"

static const struct visible_gpus gpus = {3, {FIRST, SECOND, THIRD}};

static void assert_ordinals(const char *list, int first, int second, int third)
{
    assert_int_equal(visible_ordinal(list, &gpus, FIRST), first);
    assert_int_equal(visible_ordinal(list, &gpus, SECOND), second);
    assert_int_equal(visible_ordinal(list, &gpus, THIRD), third);
}

static void test_without_a_list_all_are_visible_in_pci_order(void **state)
{
    (void)state;
    assert_ordinals(NULL, 0, 1, 2);
}

static void test_a_list_gives_the_order(void **state)
{
    (void)state;
    assert_ordinals("2,0", 1, -1, 0);
    assert_ordinals(" 1 , 2 ", -1, 0, 1);
    assert_ordinals("", -1, -1, -1);
    assert_ordinals("NoDevFiles", -1, -1, -1);
}

static void test_a_uuid_may_be_shortened_as_long_as_it_is_one_gpus(void **state)
{
    (void)state;
    assert_ordinals("GPU-52f,GPU-51", 1, -1, 0);
    assert_ordinals(THIRD ",gpu-52390C91", -1, 1, 0);
    assert_ordinals("0,GPU-52,1", 0, -1, -1); /* two GPUs begin so */
    assert_ordinals("0,GPU-,1", 0, -1, -1);
}

static void test_the_list_ends_at_what_is_no_device(void **state)
{
    (void)state;
    assert_ordinals("0,3,1", 0, -1, -1);
    assert_ordinals("1,-1,0", -1, 0, -1);
    assert_ordinals("1,x,0", -1, 0, -1);
    assert_ordinals("1,GPU-99,0", -1, 0, -1);
    assert_ordinals("1,0000,0", -1, 0, -1);
}

static void test_a_device_named_twice_hides_all(void **state)
{
    (void)state;
    assert_ordinals("0,1,0", -1, -1, -1);
    assert_ordinals("0,GPU-51", -1, -1, -1);
    assert_ordinals("0,x,0", 0, -1, -1); /* the second time comes after the end */
}

static void test_an_instance_of_a_card_counts_though_no_list_of_gpus_has_it(void **state)
{
    (void)state;
    assert_int_equal(visible_ordinal(NULL, &gpus, INSTANCE), 0);
    assert_int_equal(visible_ordinal("MIG-0bb1", &gpus, INSTANCE), 0);
    assert_int_equal(visible_ordinal("MIG-77aa,MIG-0bb1e5a0", &gpus, INSTANCE), 1);
    assert_int_equal(visible_ordinal("MIG-77aa", &gpus, INSTANCE), -1);
    assert_int_equal(visible_ordinal("0,1", &gpus, INSTANCE), -1);
}

static void test_a_uuid_has_one_form(void **state)
{
    char uuid[VISIBLE_UUID_BYTES];
    (void)state;
    assert_true(visible_uuid("MIG-0BB1E5A0-1234-5678-9abc-def012345678", uuid));
    assert_string_equal(uuid, INSTANCE);
    assert_true(visible_uuid(FIRST, uuid));
    assert_string_equal(uuid, FIRST);
    assert_false(visible_uuid("", uuid));
    assert_false(visible_uuid("GPU-51390c91", uuid));
    assert_false(visible_uuid(FIRST "0", uuid));
    assert_false(visible_uuid("XPU-51390c91-0000-4500-8a51-6d6770750000", uuid));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_list_all_are_visible_in_pci_order),
        cmocka_unit_test(test_a_list_gives_the_order),
        cmocka_unit_test(test_a_uuid_may_be_shortened_as_long_as_it_is_one_gpus),
        cmocka_unit_test(test_the_list_ends_at_what_is_no_device),
        cmocka_unit_test(test_a_device_named_twice_hides_all),
        cmocka_unit_test(test_an_instance_of_a_card_counts_though_no_list_of_gpus_has_it),
        cmocka_unit_test(test_a_uuid_has_one_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
