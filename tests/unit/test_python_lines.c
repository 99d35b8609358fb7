/* SPDX-License-Identifier: MIT
 *
 * shim/python_lines.c and python_text.c: tables and strings made by hand. Those of real
 * interpreters are read in tests/python.
 */
#include "unit.h"

#include "python_frames.h"
#include "python_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST = 10 };

static void assert_lines(enum python_lines form, const uint8_t *table, size_t bytes,
                         const int32_t *lines, uint32_t count)
{
    for (uint32_t offset = 0; offset < count; offset += 2)
        assert_int_equal(python_lines_find(form, table, bytes, FIRST, offset), lines[offset / 2]);
}

static void lines_of_3_9_go_by_pairs_and_the_last_lasts_for_ever(void **state)
{
    (void)state;
    const uint8_t table[] = {0, 1, 4, 2, 6, 0xff, 2, 127, 0, 127};
    const int32_t lines[] = {11, 11, 13, 13, 13, 12, 266, 266, 266};
    assert_lines(PYTHON_LINES_3_9, table, sizeof(table), lines, 18);
    assert_int_equal(python_lines_find(PYTHON_LINES_3_9, table, 0, FIRST, 4), FIRST);
}

static void lines_of_3_10_have_ranges_without_a_line_and_empty_ones(void **state)
{
    (void)state;
    const uint8_t table[] = {2, 0, 4, 1, 6, 0x80, 4, 0xfd, 0, 5, 2, 1};
    const int32_t lines[] = {10, 11, 11, 0, 0, 0, 8, 8, 14, 0};
    assert_lines(PYTHON_LINES_3_10, table, sizeof(table), lines, 20);
}

static void lines_of_3_11_are_found_past_entries_of_every_kind(void **state)
{
    (void)state;
    const uint8_t table[] = {0xd8, 0,    0,          /* next line, one unit */
                             0x81, 0,                /* same line, two */
                             0xe8, 7,                /* no columns, 3 lines back */
                             0xf7, 0x50, 6, 0, 1, 1, /* long, 200 lines on, eight units */
                             0xf8,                   /* no line */
                             0xe0, 0,    0};         /* two lines on */
    const int32_t lines[] = {11, 11, 11, 8, 208, 208, 208, 208, 208, 208, 208, 208, 0, 210, 0};
    assert_lines(PYTHON_LINES_3_11, table, sizeof(table), lines, 30);
}

static void no_table_makes_it_read_beyond_its_end(void **state)
{
    (void)state;
    size_t page = (size_t)getpagesize();
    uint8_t *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    srand(1);
    int32_t sum = 0;
    for (unsigned i = 0; i < 30000; i++) {
        size_t bytes = (size_t)rand() % 24;
        uint8_t *table = pages + page - bytes;
        for (size_t j = 0; j < bytes; j++)
            table[j] = (uint8_t)(rand() >> 4 | (i & 1 ? 0xc0 : 0));
        sum |= python_lines_find((enum python_lines)(i % 3), table, bytes, INT32_MAX - 1000,
                                 (uint32_t)rand() % 64);
    }
    assert_int_not_equal(sum, 0);
    munmap(pages, 2 * page);
}

static void assert_text(const void *data, uint32_t length, uint32_t width, uint32_t most,
                        const char *expected)
{
    char into[64];
    memset(into, 'X', sizeof(into));
    struct python_text text = {.data = data, .length = length, .width = width};
    uint32_t bytes = python_text_copy(into, most, &text);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(into, expected, bytes);
    assert_int_equal(into[bytes], 'X');
}

static void strings_of_every_width_become_utf8(void **state)
{
    (void)state;
    assert_text("plain", 5, 1, 60, "plain");
    assert_text("", 0, 1, 60, "");
    assert_text("\xe9t\xff", 3, 1, 60, "\xc3\xa9t\xc3\xbf");
    assert_text((uint16_t[]){'a', 0x3bb, 0x6587, 0xffff}, 4, 2, 60,
                "a\xce\xbb\xe6\x96\x87\xef\xbf\xbf");
    assert_text((uint32_t[]){0x10330, 0x10ffff, 0x7f, 0x80, 0x7ff, 0x800}, 6, 4, 60,
                "\xf0\x90\x8c\xb0\xf4\x8f\xbf\xbf\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80");
}

static void what_is_no_character_is_a_question_mark(void **state)
{
    (void)state;
    assert_text((uint16_t[]){0xd800, 'a', 0xdfff}, 3, 2, 60, "?a?");
    assert_text((uint32_t[]){0x110000, UINT32_MAX}, 2, 4, 60, "??");
}

static void of_a_long_string_the_end_is_copied_by_whole_characters(void **state)
{
    (void)state;
    assert_text("abcdef", 6, 1, 3, "def");
    assert_text("abcdef", 6, 1, 0, "");
    assert_text((uint16_t[]){0x6587, 0x6587, 'x'}, 3, 2, 6, "\xe6\x96\x87x");
    assert_text((uint16_t[]){0x6587, 0x6587, 'x'}, 3, 2, 7, "\xe6\x96\x87\xe6\x96\x87x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_3_9_go_by_pairs_and_the_last_lasts_for_ever),
        cmocka_unit_test(lines_of_3_10_have_ranges_without_a_line_and_empty_ones),
        cmocka_unit_test(lines_of_3_11_are_found_past_entries_of_every_kind),
        cmocka_unit_test(no_table_makes_it_read_beyond_its_end),
        cmocka_unit_test(strings_of_every_width_become_utf8),
        cmocka_unit_test(what_is_no_character_is_a_question_mark),
        cmocka_unit_test(of_a_long_string_the_end_is_copied_by_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
