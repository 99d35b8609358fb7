/* SPDX-License-Identifier: MIT
 *
 * shim/tags.c: the innermost name counts, of one thread, whoever pushed it.
 */
#include "unit.h"

#include "tags.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER = TAGS_FIRST_NVTX };

static const char *name(void)
{
    const struct tags_name *current = tags_current();
    return current ? current->text : NULL;
}

static void test_the_innermost_name_counts(void **state)
{
    (void)state;
    assert_null(name());
    assert_int_equal(tags_push(TAGS_OWN, "epoch 3"), 0);
    assert_string_equal(name(), "epoch 3");
    assert_int_equal(tags_push(TAGS_OWN, "validation"), 1);
    assert_string_equal(name(), "validation");
    assert_int_equal(tags_pop(TAGS_OWN), 1);
    assert_string_equal(name(), "epoch 3");
    assert_int_equal(tags_pop(TAGS_OWN), 0);
    assert_null(name());
    assert_int_equal(tags_pop(TAGS_OWN), -1);
    assert_null(name());
}

static void test_a_name_is_a_copy_and_as_long_as_a_text_at_most(void **state)
{
    char long_name[2 * GPULIMIT_TEXT_BYTES];
    (void)state;
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    tags_push(TAGS_OWN, long_name);
    memset(long_name, 'b', sizeof long_name);
    assert_int_equal(strlen(name()), GPULIMIT_TEXT_BYTES - 1);
    assert_int_equal(strspn(name(), "a"), GPULIMIT_TEXT_BYTES - 1);
    tags_pop(TAGS_OWN);
}

static void test_no_name_leaves_the_one_below_in_sight(void **state)
{
    (void)state;
    tags_push(TAGS_OWN, "epoch 3");
    tags_push(TAGS_OWN, NULL);
    tags_push(TAGS_OWN, "");
    assert_string_equal(name(), "epoch 3");
    assert_int_equal(tags_pop(TAGS_OWN), 2);
    assert_int_equal(tags_pop(TAGS_OWN), 1);
    assert_string_equal(name(), "epoch 3");
    tags_pop(TAGS_OWN);
}

static void test_deeper_ones_are_counted(void **state)
{
    char number[2] = "a";
    (void)state;
    for (unsigned i = 0; i < TAGS_DEPTH + 3; i++, number[0]++)
        assert_int_equal(tags_push(TAGS_OWN, number), i);
    assert_string_equal(name(), "p"); /* the 16th */
    for (unsigned i = TAGS_DEPTH + 3; i-- > TAGS_DEPTH;)
        assert_int_equal(tags_pop(TAGS_OWN), i);
    assert_string_equal(name(), "p");
    tags_pop(TAGS_OWN);
    assert_string_equal(name(), "o");
    for (unsigned i = TAGS_DEPTH - 1; i-- > 0;)
        assert_int_equal(tags_pop(TAGS_OWN), i);
    assert_null(name());
}

static void test_nobody_takes_away_what_another_pushed(void **state)
{
    (void)state;
    tags_push(TAGS_OWN, "epoch 3");
    assert_int_equal(tags_pop(OTHER), -1);
    assert_int_equal(tags_push(OTHER, "forward"), 0);
    assert_int_equal(tags_push(TAGS_OWN, "attention"), 1);
    assert_int_equal(tags_pop(OTHER), 0); /* not the innermost of all */
    assert_string_equal(name(), "attention");
    assert_int_equal(tags_pop(TAGS_OWN), 1);
    assert_string_equal(name(), "epoch 3");
    assert_int_equal(tags_pop(TAGS_OWN), 0);
    assert_null(name());
}

/* Else each turn of a loop would look its number up again. */
static void test_the_same_name_pushed_again_keeps_its_number(void **state)
{
    (void)state;
    tags_push(TAGS_OWN, "forward");
    assert_false(tags_current()->is_numbered);
    tags_current()->is_numbered = true;
    tags_pop(TAGS_OWN);
    tags_push(TAGS_OWN, "forward");
    assert_true(tags_current()->is_numbered);
    tags_pop(TAGS_OWN);
    tags_push(TAGS_OWN, "for");
    assert_false(tags_current()->is_numbered);
    tags_pop(TAGS_OWN);
    tags_push(TAGS_OWN, "forward");
    assert_false(tags_current()->is_numbered);
    tags_pop(TAGS_OWN);
}

static void *in_another_thread(void *is_right)
{
    bool had_none = name() == NULL;
    tags_push(TAGS_OWN, "loader");
    *(bool *)is_right = had_none && strcmp(name(), "loader") == 0;
    return NULL;
}

static void test_each_thread_has_its_own(void **state)
{
    pthread_t thread;
    bool is_right = false;
    (void)state;
    tags_push(TAGS_OWN, "epoch 3");
    assert_int_equal(pthread_create(&thread, NULL, in_another_thread, &is_right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_right);
    assert_string_equal(name(), "epoch 3");
    tags_pop(TAGS_OWN);
}

static void test_a_child_keeps_those_of_the_thread_that_forked(void **state)
{
    int status;
    (void)state;
    tags_push(TAGS_OWN, "epoch 3");
    pid_t child = fork();
    if (child == 0)
        _exit(name() && strcmp(name(), "epoch 3") == 0 && tags_pop(TAGS_OWN) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tags_pop(TAGS_OWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_name_counts),
        cmocka_unit_test(test_a_name_is_a_copy_and_as_long_as_a_text_at_most),
        cmocka_unit_test(test_no_name_leaves_the_one_below_in_sight),
        cmocka_unit_test(test_deeper_ones_are_counted),
        cmocka_unit_test(test_nobody_takes_away_what_another_pushed),
        cmocka_unit_test(test_the_same_name_pushed_again_keeps_its_number),
        cmocka_unit_test(test_each_thread_has_its_own),
        cmocka_unit_test(test_a_child_keeps_those_of_the_thread_that_forked),
    };
    return cmocka_run_group_tests_name("tags", tests, NULL, NULL);
}
