/* SPDX-License-Identifier: MIT
 *
 * shim/nvtx_names.c: wide names become UTF-8, registered ones go by a handle.
 */
#include "unit.h"

#include "nvtx_names.h"

#include <string.h>

static void assert_narrow(const wchar_t *wide, const char *expected)
{
    char name[GPULIMIT_TEXT_BYTES];
    memset(name, 'x', sizeof name);
    nvtx_narrow(name, wide);
    assert_string_equal(name, expected);
}

static void test_wide_names_become_utf_8(void **state)
{
    static const wchar_t strange[] = {0xd800, 0xdfff, 0x110000, -1, 'a', 0};
    (void)state;
    assert_narrow(L"epoch 3", "epoch 3");
    assert_narrow(L"\u00e9\u07ff\u0800\uffff\U00010000\U0010ffff",
                  "\xc3\xa9\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    assert_narrow(strange, "????a");
    assert_narrow(L"", "");
    assert_narrow(NULL, "");
}

static void test_what_does_not_fit_is_cut_between_letters(void **state)
{
    wchar_t wide[200];
    char name[GPULIMIT_TEXT_BYTES];
    (void)state;
    for (unsigned i = 0; i < 199; i++)
        wide[i] = 0x20ac; /* three bytes */
    wide[199] = 0;
    nvtx_narrow(name, wide);
    assert_int_equal(strlen(name), 126);
    wide[0] = 'a';
    nvtx_narrow(name, wide);
    assert_int_equal(strlen(name), 127);
}

static void test_a_registered_name_is_a_copy_with_a_handle(void **state)
{
    char text[] = "forward";
    (void)state;
    assert_null(nvtx_registered(NULL));
    assert_null(nvtx_registered(text));
    const void *handle = nvtx_register(text);
    memset(text, 'x', sizeof text - 1);
    assert_string_equal(nvtx_registered(handle), "forward");
    assert_string_equal(nvtx_registered(nvtx_register("backward")), "backward");
    assert_null(nvtx_registered((const char *)handle + 1));
    assert_null(nvtx_registered((const char *)handle - GPULIMIT_TEXT_BYTES));
    assert_null(nvtx_registered(NULL));
    assert_null(nvtx_register(NULL));
}

/* Last, as it leaves no room. */
static void test_there_is_an_end_to_them(void **state)
{
    const void *last = NULL;
    unsigned count = 0;
    (void)state;
    for (const void *handle; (handle = nvtx_register("more")) != NULL; count++)
        last = handle;
    assert_in_range(count, NVTX_NAMES_MOST - 8, NVTX_NAMES_MOST);
    assert_string_equal(nvtx_registered(last), "more");
    assert_null(nvtx_registered((const char *)last + GPULIMIT_TEXT_BYTES));
    assert_null(nvtx_register("one more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_names_become_utf_8),
        cmocka_unit_test(test_what_does_not_fit_is_cut_between_letters),
        cmocka_unit_test(test_a_registered_name_is_a_copy_with_a_handle),
        cmocka_unit_test(test_there_is_an_end_to_them),
    };
    return cmocka_run_group_tests_name("nvtx_names", tests, NULL, NULL);
}
