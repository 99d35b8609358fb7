/* SPDX-License-Identifier: MIT
 *
 * shim/array_size.c against the requirement figures that a driver gave (H200, driver 580.159):
 * never less, and not much more.
 */
#include "unit.h"

#include "array_size.h"

enum { INT8 = 0x01, HALF = 0x10, FLOAT = 0x20, BC1 = 0x91, NV12 = 0xb0 };

static const struct {
    struct array_shape shape;
    unsigned levels;
    uint64_t driver_bytes;
} measured[] = {
    {{1000, 1000, 0, FLOAT, 4, false}, 1, 16384000}, {{100000, 0, 0, FLOAT, 1, false}, 1, 3211264},
    {{256, 256, 256, HALF, 2, false}, 1, 67108864},  {{512, 512, 6, FLOAT, 1, true}, 1, 6291456},
    {{512, 512, 10, FLOAT, 1, true}, 1, 10485760},   {{2048, 2048, 0, BC1, 4, false}, 1, 2097152},
};

/* The driver's figures are whole multiples of 64 KiB. */
static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 65535) / 65536 * 65536;
}

static void test_sizes_are_the_drivers_or_a_little_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        uint64_t bytes = rounded(array_size(&measured[i].shape, measured[i].levels));
        if (bytes < measured[i].driver_bytes || bytes > measured[i].driver_bytes * 5 / 4)
            fail_msg("row %zu: %llu bytes, the driver says %llu", i, (unsigned long long)bytes,
                     (unsigned long long)measured[i].driver_bytes);
    }
}

static void test_bits_are_not_bytes_and_no_extent_of_0_makes_nothing(void **state)
{
    (void)state;
    assert_int_equal(
        array_size(&(struct array_shape){.width = 64, .format = INT8, .channels = 1}, 1), 512);
    assert_int_equal(
        array_size(
            &(struct array_shape){.width = 4096, .height = 128, .format = INT8, .channels = 1}, 1),
        4096 * 128);
    assert_int_equal(
        array_size(&(struct array_shape){.height = 5, .format = INT8, .channels = 1}, 1), 0);
    assert_int_equal(
        array_size(
            &(struct array_shape){.width = 1024, .height = 1024, .format = NV12, .channels = 3}, 1),
        1024 * 1024 * 3 / 2);
}

static void test_levels_add_up(void **state)
{
    struct array_shape shape = {1024, 1024, 0, FLOAT, 4, false};
    (void)state;
    uint64_t one = array_size(&shape, 1), all = array_size(&shape, 11);
    assert_true(all > one && all < one * 3 / 2);
}

static void test_unknown_formats_count_as_the_largest(void **state)
{
    struct array_shape shape = {1024, 1024, 0, 0x7777, 1, false};
    (void)state;
    assert_int_equal(array_size(&shape, 1), 1024 * 1024 * 16);
}

static void test_monsters_saturate(void **state)
{
    struct array_shape shape = {UINT64_MAX, UINT64_MAX, UINT64_MAX, FLOAT, 4, false};
    (void)state;
    assert_true(array_size(&shape, 20) >= UINT64_C(1) << 60);
    shape = (struct array_shape){UINT64_C(1) << 40, UINT64_C(1) << 40, 6, FLOAT, 4, true};
    assert_true(array_size(&shape, 20) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_the_drivers_or_a_little_more),
        cmocka_unit_test(test_bits_are_not_bytes_and_no_extent_of_0_makes_nothing),
        cmocka_unit_test(test_levels_add_up),
        cmocka_unit_test(test_unknown_formats_count_as_the_largest),
        cmocka_unit_test(test_monsters_saturate),
    };
    return cmocka_run_group_tests_name("array_size", tests, NULL, NULL);
}
