/* SPDX-License-Identifier: MIT
 *
 * tools/demangle.c: names of C++ as people know them, and all others left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>

#include "../cannot.h"
#include "demangle.h"

static void test_expect(const char *name, const char *readable)
{
    char *found = demangle_name(name);

    assert_non_null(found);
    assert_string_equal(found, readable);
    free(found);
}

static void test_a_name_is_shown_without_what_it_takes(void **state)
{
    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_NOW)) {
        CANNOT_BE_SEEN("there is no C++ library here");
        return;
    }
    test_expect("_ZN4pool4growEm", "pool::grow");
    test_expect("_Z3addIiET_S0_S0_", "int add<int>");
    test_expect("_ZN12_GLOBAL__N_14helpEv", "(anonymous namespace)::help");
    test_expect("_ZN4poolclEi", "pool::operator()");
    test_expect("_ZN4poollsEi", "pool::operator<<");
    test_expect("_ZN3mapI4pairIiiEE3addEPFviE", "map<pair<int, int> >::add");
}

static void test_other_names_are_left_alone(void **state)
{
    (void)state;
    assert_null(demangle_name("main"));
    assert_null(demangle_name(""));
    assert_null(demangle_name("_Z"));
    assert_null(demangle_name("_Znonsense"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_shown_without_what_it_takes),
        cmocka_unit_test(test_other_names_are_left_alone),
    };
    return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
