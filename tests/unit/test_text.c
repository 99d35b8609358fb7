/* SPDX-License-Identifier: MIT
 *
 * Numbers and foreign strings as the tools print them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MIB (UINT64_C(1) << 20)

static void test_sizes_keep_the_unit_of_their_limit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0B"},
        {1023, "1023B"},
        {1024, "1K"},
        {1536, "1.5K"},
        {MIB, "1M"},
        {1024 * MIB, "1024M"},
        {1024 * MIB - 1, "1024.0M"}, /* not the whole: whole numbers are exact */
        {1536 * MIB, "1536M"},
        {10239 * MIB, "10239M"},
        {10240 * MIB, "10G"},
        {143771 * MIB, "140.4G"},
        {UINT64_C(1) << 44, "16T"},
        {UINT64_MAX, "16777216.0T"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char cell[TEXT_CELL_BYTES];

        text_print_bytes(sizes[i].bytes, false, cell);
        assert_string_equal(cell, sizes[i].text);
    }
}

static void test_ages_have_two_units(void **state)
{
    static const struct {
        uint64_t seconds;
        const char *text;
    } ages[] = {{0, "0s"},        {59, "59s"},      {60, "1m00s"},   {185, "3m05s"},
                {3599, "59m59s"}, {3600, "1h00m"},  {8070, "2h14m"}, {86399, "23h59m"},
                {86400, "1d00h"}, {273600, "3d04h"}};

    (void)state;
    for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        char cell[TEXT_CELL_BYTES];

        text_print_age(ages[i].seconds, cell);
        assert_string_equal(cell, ages[i].text);
    }
}

static void test_what_is_no_utf8_is_escaped(void **state)
{
    static const struct {
        const char *bytes, *clean, *ascii, *utf8;
    } texts[] = {
        {"plain", "plain", "plain", "plain"},
        {"caf\xc3\xa9", "caf\xc3\xa9", "caf\\u00e9", "caf\xc3\xa9"},
        {"\xf0\x9f\x90\x8d", "\xf0\x9f\x90\x8d", "\\U0001f40d", "\xf0\x9f\x90\x8d"},
        {"\x1b[31m\n", "\\x1b[31m\\x0a", "\\x1b[31m\\x0a", "\x1b[31m\n"},
        {"\x7f", "\\x7f", "\\x7f", "\x7f"},
        {"\xc2\x9b", "\\u009b", "\\u009b", "\xc2\x9b"},
        {"\xe2\x80\xae", "\\u202e", "\\u202e", "\xe2\x80\xae"},
        {"\xff\xfe", "\\xff\\xfe", "\\xff\\xfe", "\\xff\\xfe"},
        {"\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf", "\\xc0\\xaf"}, /* too long a form */
        {"\xe0\x80\xaf", "\\xe0\\x80\\xaf", "\\xe0\\x80\\xaf", "\\xe0\\x80\\xaf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80",
         "\\xf4\\x90\\x80\\x80"},
        {"a\xe2\x82", "a\\xe2\\x82", "a\\xe2\\x82", "a\\xe2\\x82"}, /* cut off */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *clean = text_clean(texts[i].bytes, true);
        char *ascii = text_clean(texts[i].bytes, false);
        char *utf8 = text_to_utf8(texts[i].bytes);

        assert_string_equal(clean, texts[i].clean);
        assert_string_equal(ascii, texts[i].ascii);
        assert_string_equal(utf8, texts[i].utf8);
        free(clean);
        free(ascii);
        free(utf8);
    }
}

static void test_distance_counts_slips_of_the_finger(void **state)
{
    (void)state;
    assert_int_equal(text_get_distance("allocs", "allocs"), 0);
    assert_int_equal(text_get_distance("alocs", "allocs"), 1);
    assert_int_equal(text_get_distance("lalocs", "allocs"), 1);
    assert_int_equal(text_get_distance("allocsx", "allocs"), 1);
    assert_int_equal(text_get_distance("", "abc"), 3);
    assert_int_equal(text_get_distance("top", "hooks"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_keep_the_unit_of_their_limit),
        cmocka_unit_test(test_ages_have_two_units),
        cmocka_unit_test(test_what_is_no_utf8_is_escaped),
        cmocka_unit_test(test_distance_counts_slips_of_the_finger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
