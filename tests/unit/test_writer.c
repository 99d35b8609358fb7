/* SPDX-License-Identifier: MIT
 *
 * report/writer.c: what it writes is JSON, whatever the strings hold; the bound holds, and a text
 * that is cut off says so.
 */
#include "unit.h"

#include "report/writer.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct writer writer;
static char written[65536];

static int open_writer(void **state)
{
    (void)state;
    writer_begin(&writer, memfd_create("written", 0), sizeof written - 1);
    return writer.file < 0;
}

static int close_writer(void **state)
{
    (void)state;
    return close(writer.file);
}

/* Ends the text and returns it. */
static const char *end(void)
{
    assert_true(writer_end(&writer));
    ssize_t length = pread(writer.file, written, sizeof written - 1, 0);
    assert_int_equal(length, writer.total);
    written[length] = '\0';
    return written;
}

static void objects_and_arrays_nest(void **state)
{
    (void)state;
    writer_open_object(&writer, NULL);
    writer_add_text(&writer, "schema", "a/1");
    writer_open_array(&writer, "list");
    writer_add_number(&writer, NULL, 0);
    writer_add_number(&writer, NULL, UINT64_MAX);
    writer_open_object(&writer, NULL);
    writer_close_object(&writer);
    writer_close_array(&writer);
    writer_add_bool(&writer, "is_true", true);
    writer_add_null(&writer, "nothing");
    writer_add_address(&writer, "address", 0x7f00deadbeef);
    writer_close_object(&writer);
    assert_string_equal(end(), "{\n"
                               "  \"schema\": \"a/1\",\n"
                               "  \"list\": [\n"
                               "    0,\n"
                               "    18446744073709551615,\n"
                               "    {}\n"
                               "  ],\n"
                               "  \"is_true\": true,\n"
                               "  \"nothing\": null,\n"
                               "  \"address\": \"0x7f00deadbeef\"\n"
                               "}\n");
}

static void whatever_a_string_holds_the_text_is_json(void **state)
{
    (void)state;
    writer_open_array(&writer, NULL);
    writer_add_text(&writer, NULL, "a\"b\\c\n\x1b\x7f");
    writer_add_text(&writer, NULL, "\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80");      /* characters */
    writer_add_text(&writer, NULL, "\xff \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80"); /* none */
    writer_add_text(&writer, NULL, "\xe2\x86");                                    /* half of one */
    writer_add_text(&writer, NULL, "\xc2\x9b \xe2\x80\xae \xef\xbb\xbf");          /* unsafe ones */
    writer_close_array(&writer);
    assert_string_equal(end(), "[\n"
                               "  \"a\\\"b\\\\c\\u000a\\u001b\\u007f\",\n"
                               "  \"\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80\",\n"
                               "  \"\\u00ff \\u00c0\\u0080 \\u00ed\\u00a0\\u0080 "
                               "\\u00f4\\u0090\\u0080\\u0080\",\n"
                               "  \"\\u00e2\\u0086\",\n"
                               "  \"\\u009b \\u202e \\ufeff\"\n"
                               "]\n");
}

static void times_are_those_of_the_calendar(void **state)
{
    static const struct {
        uint64_t seconds;
        const char *date;
    } times[] = {{1, "\"1970-01-01T00:00:01.000Z\""},
                 {951782399, "\"2000-02-28T23:59:59.000Z\""},
                 {951782400, "\"2000-02-29T00:00:00.000Z\""},
                 {1796044621, "\"2026-11-30T13:17:01.000Z\""},
                 {4107542400, "\"2100-03-01T00:00:00.000Z\""}};
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        open_writer(NULL);
        writer_add_time(&writer, NULL, times[i].seconds * 1000000000u);
        assert_memory_equal(end(), times[i].date, strlen(times[i].date));
        close_writer(NULL);
    }
    open_writer(NULL);
    writer_add_time(&writer, NULL, 1796044621 * UINT64_C(1000000000) + 45999999);
    assert_string_equal(end(), "\"2026-11-30T13:17:01.045Z\"\n");
}

static void seconds_have_three_decimals(void **state)
{
    (void)state;
    writer_open_array(&writer, NULL);
    writer_add_seconds(&writer, NULL, 0);
    writer_add_seconds(&writer, NULL, 12 * UINT64_C(1000000000) + 45999999);
    writer_add_seconds(&writer, NULL, UINT64_MAX);
    writer_close_array(&writer);
    assert_string_equal(end(), "[\n  0.000,\n  12.045,\n  18446744073.709\n]\n");
}

static void what_is_longer_than_the_buffer_arrives_whole(void **state)
{
    (void)state;
    writer_open_array(&writer, NULL);
    for (unsigned i = 0; i < 5000; i++)
        writer_add_number(&writer, NULL, 10000 + i);
    writer_close_array(&writer);
    const char *text = end();
    for (unsigned i = 0; i < 5000; i++) {
        unsigned number;
        assert_int_equal(sscanf(text + 2 + i * 9, "  %u", &number), 1);
        assert_int_equal(number, 10000 + i);
    }
}

static void nothing_is_written_beyond_the_bound(void **state)
{
    (void)state;
    writer_begin(&writer, writer.file, 100);
    writer_open_array(&writer, NULL);
    assert_true(writer_has_room(&writer, 99));
    assert_false(writer_has_room(&writer, 100));
    for (unsigned i = 0; i < 50; i++)
        writer_add_text(&writer, NULL, "0123456789");
    writer_close_array(&writer);
    assert_false(writer_end(&writer));
    assert_true(lseek(writer.file, 0, SEEK_END) <= 100);
}

static void a_descriptor_that_takes_nothing_is_told_of(void **state)
{
    (void)state;
    struct writer lost;
    writer_begin(&lost, -1, 1000);
    writer_add_number(&lost, NULL, 1);
    assert_false(writer_end(&lost));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_and_arrays_nest, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(whatever_a_string_holds_the_text_is_json, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(times_are_those_of_the_calendar, NULL, close_writer),
        cmocka_unit_test_setup_teardown(seconds_have_three_decimals, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(what_is_longer_than_the_buffer_arrives_whole, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(nothing_is_written_beyond_the_bound, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(a_descriptor_that_takes_nothing_is_told_of, open_writer,
                                        close_writer),
    };
    return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
