/* SPDX-License-Identifier: MIT
 *
 * shim/site_name.c: the place where a person would say that memory was asked for.
 */
#include "unit.h"

#include "site_name.h"

#include <string.h>

static void test_the_innermost_line_of_the_programs_own_comes_first(void **state)
{
    struct site_name name = {{0}, 0};
    (void)state;
    assert_string_equal(name.text, "");
    site_name_add_native(&name, "/usr/lib/libtorch_cuda.so", 0x1a2b);
    site_name_add_python(&name, "/v/lib/python3.12/site-packages/torch/nn/linear.py", "forward", 7);
    site_name_add_python(&name, "/project/model.py", "forward", 88);
    site_name_add_python(&name, "/project/train.py", "main", 12);
    assert_string_equal(name.text, "model.py:88 forward");
}

static void test_without_a_line_of_its_own_the_innermost_module_is_named(void **state)
{
    struct site_name name = {{0}, 0};
    (void)state;
    site_name_add_native(&name, "/opt/lib/libgpulimit.so.1", 1);
    site_name_add_native(&name, "/usr/local/cuda/lib64/libcudart.so.13", 2);
    site_name_add_native(&name, "", 3);
    site_name_add_native(&name, "/project/simulate", 0xbeef0);
    assert_string_equal(name.text, "code made at run time+0x3");
    memset(&name, 0, sizeof name);
    site_name_add_native(&name, "/usr/lib/libc.so.6", 2);
    site_name_add_native(&name, "/project/simulate", 0xbeef0);
    assert_string_equal(name.text, "simulate+0xbeef0");
    memset(&name, 0, sizeof name);
    site_name_add_native(&name, "/v/lib/python3.12/site-packages/torch/lib/libc10_cuda.so", 2);
    site_name_add_native(&name, "/v/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so", 0xa);
    assert_string_equal(name.text, "libtorch_cuda.so+0xa");
}

static void test_where_all_is_passed_through_the_innermost_is_better_than_nothing(void **state)
{
    struct site_name name = {{0}, 0};
    (void)state;
    site_name_add_native(&name, "/usr/lib/libcudart.so.13", 0);
    site_name_add_native(&name, "/usr/lib/libc.so.6", 2);
    assert_string_equal(name.text, "libcudart.so.13+0x0");
    site_name_add_python(&name, "<frozen runpy>", "run", 3);
    assert_string_equal(name.text, "<frozen runpy>:3 run");
}

static void test_the_interpreter_is_nobodys_place(void **state)
{
    struct site_name name = {{0}, 0};
    (void)state;
    site_name_add_native(&name, "/usr/lib/libpython3.12.so.1.0", 1);
    site_name_add_native(&name, "/usr/bin/python3.12", 2);
    site_name_add_python(&name, "/v/lib/python3.12/site-packages/torch/nn/linear.py", "forward", 7);
    assert_string_equal(name.text, "linear.py:7 forward");
}

static void test_what_does_not_fit_is_cut(void **state)
{
    struct site_name name = {{0}, 0};
    char function[200];
    (void)state;
    memset(function, 'f', sizeof function - 1);
    function[sizeof function - 1] = '\0';
    site_name_add_python(&name, "a.py", function, 1);
    assert_int_equal(strlen(name.text), SITE_NAME_BYTES - 1);
    assert_int_equal(strncmp(name.text, "a.py:1 fff", 10), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_line_of_the_programs_own_comes_first),
        cmocka_unit_test(test_without_a_line_of_its_own_the_innermost_module_is_named),
        cmocka_unit_test(test_where_all_is_passed_through_the_innermost_is_better_than_nothing),
        cmocka_unit_test(test_the_interpreter_is_nobodys_place),
        cmocka_unit_test(test_what_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests_name("site_name", tests, NULL, NULL);
}
