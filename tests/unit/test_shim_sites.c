/* SPDX-License-Identifier: MIT
 *
 * shim/sites.c: the same stack is the same number, and what it is made of is kept once.
 */
#include "unit.h"

#include "sites.h"

#include <string.h>

static struct sites_stack stack_of(uint64_t first)
{
    struct sites_stack stack = {.native_count = 3, .native = {first, 2, 3}};
    return stack;
}

static void test_a_stack_is_told_by_what_is_in_it(void **state)
{
    static struct sites_stack one, same, other, shorter, python, later; /* too large for a frame */
    static const char code, function;
    (void)state;
    one = same = shorter = python = later = stack_of(1);
    other = stack_of(7);
    shorter.native_count = 2;
    python.python_count = later.python_count = 1;
    python.python[0] = later.python[0] =
        (struct python_frame){.code = &code, .line = 10, .function = {.data = &function}};
    later.python[0].line = 11;
    assert_true(sites_hash(&one) == sites_hash(&same));
    assert_true(sites_hash(&one) != sites_hash(&other));
    assert_true(sites_hash(&one) != sites_hash(&shorter));
    assert_true(sites_hash(&one) != sites_hash(&python));
    assert_true(sites_hash(&python) != sites_hash(&later));
    assert_true(sites_hash(&one) != 0);
}

static void test_a_site_has_one_number(void **state)
{
    struct sites sites = {0};
    struct gpulimit_site site = {.native_count = 1};
    (void)state;
    assert_int_equal(sites_find(&sites, 42), 0);
    assert_int_equal(sites_add(&sites, 42, &site, "here"), 1);
    assert_int_equal(sites_add(&sites, 43, &site, "here"), 2);
    assert_int_equal(sites_add(&sites, 42, &site, "here"), 1); /* another thread was first */
    assert_int_equal(sites_find(&sites, 43), 2);
    sites_clear(&sites);
    assert_int_equal(sites_find(&sites, 42), 0);
    assert_int_equal(sites_add(&sites, 43, &site, "here"), 1);
    sites_clear(&sites);
}

static void test_texts_and_modules_are_kept_once(void **state)
{
    struct sites sites = {0};
    struct sites_text train = {"train.py"}, model = {"model.py"};
    struct gpulimit_module module = {.start = 4096, .end = 8192, .build_id_bytes = 20};
    (void)state;
    assert_int_equal(sites_add_text(&sites, &train), 1);
    assert_int_equal(sites_add_text(&sites, &model), 2);
    assert_int_equal(sites_add_text(&sites, &train), 1);
    assert_int_equal(sites_add_module(&sites, &module), 1);
    assert_int_equal(sites_add_module(&sites, &module), 1);
    module.build_id[0] = 1; /* another, loaded where the first one was */
    assert_int_equal(sites_add_module(&sites, &module), 2);
    sites_clear(&sites);
}

static void test_what_was_added_can_be_read_back_where_it_stays(void **state)
{
    struct sites sites = {0};
    struct gpulimit_site site = {.native_count = 1, .frames = {{.file = 1, .place = 7}}};
    struct gpulimit_module module = {.start = 4096, .end = 8192, .path = "/lib/a.so"};
    struct sites_text text = {"train.py"};
    (void)state;
    assert_null(sites_kept_text(sites.kept, 1));
    assert_int_equal(sites_add_text(&sites, &text), 1);
    const char *kept_text = sites_kept_text(sites.kept, 1);
    assert_int_equal(sites_add_module(&sites, &module), 1);
    for (uint32_t i = 1; i <= SITES_MOST; i++) {
        site.python_count = (uint16_t)i;
        assert_int_equal(sites_add(&sites, i, &site, "here"), i);
    }
    assert_string_equal(kept_text, "train.py");
    assert_string_equal(sites_kept_module(sites.kept, 1)->path, "/lib/a.so");
    assert_int_equal(sites_kept_site(sites.kept, 1)->frames[0].place, 7);
    assert_int_equal(sites_kept_site(sites.kept, SITES_MOST)->python_count, SITES_MOST);
    assert_null(sites_kept_site(sites.kept, 0));
    assert_null(sites_kept_site(sites.kept, SITES_MOST + 1));
    assert_null(sites_kept_text(sites.kept, SITES_TEXTS_MOST + 1));
    assert_null(sites_kept_module(sites.kept, UINT32_MAX));
    sites_clear(&sites);
    assert_null(sites.kept);
}

static void test_there_is_an_end_to_what_is_kept(void **state)
{
    struct sites sites = {0};
    struct gpulimit_site site = {.native_count = 1};
    struct sites_text text = {""};
    (void)state;
    for (uint32_t i = 1; i <= SITES_MOST; i++) {
        assert_false(sites_are_full(&sites));
        assert_int_equal(sites_add(&sites, i, &site, "here"), i);
    }
    assert_true(sites_are_full(&sites));
    assert_int_equal(sites_add(&sites, SITES_MOST + 1, &site, "here"), 0);
    assert_int_equal(sites_find(&sites, SITES_MOST + 1), 0);
    for (uint32_t i = 1; i <= SITES_TEXTS_MOST; i++) {
        memcpy(text.text, &i, sizeof i);
        assert_int_equal(sites_add_text(&sites, &text), i);
    }
    text.text[8] = 'x';
    assert_int_equal(sites_add_text(&sites, &text), 0);
    sites_clear(&sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stack_is_told_by_what_is_in_it),
        cmocka_unit_test(test_a_site_has_one_number),
        cmocka_unit_test(test_texts_and_modules_are_kept_once),
        cmocka_unit_test(test_what_was_added_can_be_read_back_where_it_stays),
        cmocka_unit_test(test_there_is_an_end_to_what_is_kept),
    };
    return cmocka_run_group_tests_name("sites", tests, NULL, NULL);
}
