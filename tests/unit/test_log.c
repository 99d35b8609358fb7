/* SPDX-License-Identifier: MIT
 *
 * shim/log.c: sizes as people say them, nothing written past the buffer, one write, errno
 * untouched.
 */
#include "unit.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void assert_size(uint64_t bytes, const char *expected)
{
    struct text text;
    text_init(&text);
    text_add_size(&text, bytes);
    assert_string_equal(text_string(&text), expected);
}

static void test_sizes_read_as_people_say_them(void **state)
{
    (void)state;
    assert_size(0, "0 bytes");
    assert_size(700, "700 bytes");
    assert_size(1024, "1 KiB");
    assert_size(MIB(512), "512 MiB");
    assert_size(MIB(1024), "1024 MiB");
    assert_size(MIB(2048), "2048 MiB");
    assert_size(MIB(10240), "10 GiB");
    assert_size(MIB(1536) + 1, "1536.1 MiB");
    assert_size(MIB(143771), "140.5 GiB");
    assert_size(UINT64_MAX, "16 EiB");
}

static void test_a_text_is_cut_at_its_end(void **state)
{
    struct text text;
    (void)state;
    text_init(&text);
    for (unsigned i = 0; i < 3000; i++)
        text_add(&text, "x");
    assert_int_equal(strlen(text_string(&text)), sizeof text.bytes - 1);
}

static void test_quoted_text_cannot_command_a_terminal(void **state)
{
    struct text text;
    (void)state;
    text_init(&text);
    text_add_quoted(&text, "a\x1b[31mb\nc\x7f", 100);
    assert_string_equal(text_string(&text), "a?[31mb?c?");
    text_init(&text);
    text_add_quoted(&text, "abcdef", 3);
    assert_string_equal(text_string(&text), "abc");
}

static void test_numbers_are_decimal_or_hexadecimal(void **state)
{
    struct text text;
    (void)state;
    text_init(&text);
    text_add_number(&text, 0);
    text_add(&text, " ");
    text_add_number(&text, UINT64_MAX);
    assert_string_equal(text_string(&text), "0 18446744073709551615");
    text_init(&text);
    text_add_hex(&text, 0);
    text_add(&text, " ");
    text_add_hex(&text, 0x55d0);
    text_add(&text, " ");
    text_add_hex(&text, UINT64_MAX);
    assert_string_equal(text_string(&text), "0 55d0 ffffffffffffffff");
}

static void test_a_file_gets_each_text_whole_and_no_descriptor_stays(void **state)
{
    char path[64], expected[80], got[16] = "";
    struct text text;
    (void)state;
    snprintf(expected, sizeof expected, "/tmp/gpulimit-test-log.%d", (int)getpid());
    strcpy(path, "/tmp/gpulimit-test-log.%p");
    int next = dup(0);
    close(next);
    log_set_target(path);
    text_init(&text);
    text_add(&text, "one\n");
    log_write(&text);
    log_write(&text);
    int file = open(expected, O_RDONLY);
    assert_int_equal(file, next);
    assert_int_equal(read(file, got, sizeof got), 8);
    assert_memory_equal(got, "one\none\n", 8);
    close(file);
    unlink(expected);
    log_set_target("stderr");
}

static void test_errno_is_left_alone_when_writing_fails(void **state)
{
    struct text text;
    (void)state;
    log_set_target("/nonexistent/folder/file");
    text_init(&text);
    text_add(&text, "lost");
    errno = EXDEV;
    log_write(&text);
    assert_int_equal(errno, EXDEV);
    log_set_target("stderr");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_read_as_people_say_them),
        cmocka_unit_test(test_a_text_is_cut_at_its_end),
        cmocka_unit_test(test_quoted_text_cannot_command_a_terminal),
        cmocka_unit_test(test_numbers_are_decimal_or_hexadecimal),
        cmocka_unit_test(test_a_file_gets_each_text_whole_and_no_descriptor_stays),
        cmocka_unit_test(test_errno_is_left_alone_when_writing_fails),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
