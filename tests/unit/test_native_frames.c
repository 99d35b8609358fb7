/* SPDX-License-Identifier: MIT
 *
 * shim/native_frames.c. This program holds the functions under test, so its own frames are those
 * that are left out, as the library's are in it. What is left are the frames of native_chain.c,
 * which it opens at run time, and of the C library.
 *
 * Most tests run twice, with the fast walk and with the C library's: a caller in code that belongs
 * to no object makes the fast one give up.
 *
 *   usage: test_native_frames CHAIN
 */
#include "unit.h"

#include "native_fixture.h"

#include "../cannot.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, CAPTURES = 500 };

static const char *chain_path;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LEAST_STACK = 1 << 20 }; /* the sanitizers themselves want more */
#else
enum { LEAST_STACK = 16384 };
#endif

static int set_up(void **state)
{
    (void)state;
    return open_chain(chain_path);
}

static int tear_down(void **state)
{
    (void)state;
    return dlclose(chain.handle);
}

static void *take_on_a_thread(void *argument)
{
    call(take_through_the_chain, argument);
    return NULL;
}

static bool first_capture_on_the_least_stack(void)
{
    struct capture capture = {.most = ASKED};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    return pthread_attr_setstacksize(&attributes, LEAST_STACK) == 0 &&
           pthread_create(&thread, &attributes, take_on_a_thread, &capture) == 0 &&
           pthread_join(thread, NULL) == 0 && capture.count >= CHAIN_FRAMES &&
           is_chain(capture.addresses);
}

static bool first_capture_keeps_errno(void)
{
    errno = 4321;
    struct capture capture = captured();
    return errno == 4321 && capture.count >= CHAIN_FRAMES;
}

/* These come first: here nobody has captured yet, so nobody has loaded the unwinder. */
static void test_the_first_capture_may_be_on_the_least_stack(void **state)
{
    (void)state;
    for
        BOTH_WAYS
    assert_true(says_true_in_a_child(first_capture_on_the_least_stack));
}

static void test_the_first_capture_and_later_ones_keep_errno(void **state)
{
    (void)state;
    for
        BOTH_WAYS
    assert_true(says_true_in_a_child(first_capture_keeps_errno));
    for
        BOTH_WAYS
        {
            assert_true(first_capture_keeps_errno());
            assert_true(first_capture_keeps_errno());
        }
}

static void test_the_callers_return_addresses_come_innermost_first(void **state)
{
    (void)state;
    for
        BOTH_WAYS
        {
            struct capture capture = captured();
            assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
            assert_true(is_chain(capture.addresses));
        }
}

static void test_the_same_place_gives_the_same_frames_and_another_others(void **state)
{
    struct capture capture[3];
    (void)state;
    is_slow = false;
    for (int i = 0; i < 2; i++)
        capture[i] = captured();
    capture[2] = (struct capture){.most = ASKED};
    chain.middle(take, &capture[2]);
    assert_int_equal(capture[0].count, capture[1].count);
    assert_memory_equal(&capture[0], &capture[1], sizeof capture[0]);
    assert_int_equal(capture[2].count, capture[0].count - 1);
    assert_int_equal(capture[2].addresses[0], capture[0].addresses[0]);
    assert_int_not_equal(capture[2].addresses[2], capture[0].addresses[2]);
}

static void test_frames_of_this_object_are_left_out_wherever_they_stand(void **state)
{
    struct capture capture = {.most = ASKED};
    Dl_info own, found;
    (void)state;
    is_slow = false;
    chain.outer(take_through_the_chain, &capture);
    assert_in_range(capture.count, 2 * CHAIN_FRAMES, ASKED);
    assert_true(is_chain(capture.addresses));
    assert_true(is_chain(capture.addresses + CHAIN_FRAMES));
    assert_true(dladdr((void *)native_frames, &own) != 0);
    for (unsigned i = 0; i < capture.count; i++) {
        assert_true(dladdr((void *)(uintptr_t)capture.addresses[i], &found) != 0);
        assert_ptr_not_equal(found.dli_fbase, own.dli_fbase);
    }
}

/* A recursion of our own before the capture, deeper than is foreseen. */
static void take_deep_within(struct capture *capture, unsigned depth)
{
    if (depth == 0)
        take(capture);
    else
        take_deep_within(capture, depth - 1);
    __asm__ volatile("" ::: "memory");
}

static void take_ten_below(void *argument)
{
    take_deep_within(argument, 10);
    __asm__ volatile("" ::: "memory");
}

static void take_ten_below_the_chain(void *argument)
{
    chain.outer(take_ten_below, argument);
    __asm__ volatile("" ::: "memory");
}

static void test_more_of_our_own_frames_than_foreseen_cost_none_of_the_others(void **state)
{
    (void)state;
    for
        BOTH_WAYS
        {
            struct capture shallow = {.most = CHAIN_FRAMES + 1}, deep = {.most = CHAIN_FRAMES + 1};
            call(take_through_the_chain, &shallow);
            call(take_ten_below_the_chain, &deep);
            assert_true(is_chain(shallow.addresses));
            assert_in_range(deep.count, CHAIN_FRAMES, shallow.count);
            assert_true(is_chain(deep.addresses));
        }
}

static void test_no_more_frames_come_than_were_asked_for(void **state)
{
    (void)state;
    for (unsigned most = 0; most <= NATIVE_FRAMES_MOST + 2; most++) {
        struct capture capture = {.most = most};
        memset(capture.addresses, 0xff, sizeof capture.addresses);
        chain.deep(take, &capture, 100);
        unsigned given = most < NATIVE_FRAMES_MOST ? most : NATIVE_FRAMES_MOST;
        assert_int_equal(capture.count, given);
        for (unsigned i = 0; i < given; i++) {
            void *expected = i == 0   ? (void *)chain.inner
                             : i == 1 ? (void *)chain.middle
                             : i == 2 ? (void *)chain.outer
                                      : (void *)chain.deep;
            assert_ptr_equal(function_of(capture.addresses[i]), expected);
        }
        for (unsigned i = given; i < NATIVE_FRAMES_MOST + 2; i++)
            assert_true(capture.addresses[i] == UINT64_MAX);
    }
}

static void *take_many_on_a_thread(void *argument)
{
    struct capture *first = argument;
    *first = captured();
    for (int i = 1; i < CAPTURES; i++) {
        struct capture next = captured();
        if (next.count != first->count || memcmp(&next, first, sizeof next) != 0)
            first->count = 0;
    }
    return NULL;
}

static void test_threads_capture_at_once(void **state)
{
    struct capture capture[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    for
        BOTH_WAYS
        {
            for (int i = 0; i < THREADS; i++)
                assert_int_equal(
                    pthread_create(&threads[i], NULL, take_many_on_a_thread, &capture[i]), 0);
            for (int i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], NULL), 0);
                assert_in_range(capture[i].count, CHAIN_FRAMES, ASKED);
                assert_true(is_chain(capture[i].addresses));
            }
        }
}

static bool captures(void)
{
    struct capture capture = captured();
    struct native_module module;
    return capture.count >= CHAIN_FRAMES && is_chain(capture.addresses) &&
           native_module_of(capture.addresses[0], &module);
}

static void test_a_child_captures_that_was_forked_amid_captures(void **state)
{
    struct capture capture = {0};
    pthread_t thread;
    (void)state;
    for
        BOTH_WAYS
        {
            assert_int_equal(pthread_create(&thread, NULL, take_many_on_a_thread, &capture), 0);
            for (int i = 0; i < 10; i++)
                assert_true(says_true_in_a_child(captures));
            assert_int_equal(pthread_join(thread, NULL), 0);
        }
}

static void take_and_find(void *argument)
{
    struct native_module module;
    struct capture *capture = argument;
    take(capture);
    if (!is_chain(capture->addresses) || !native_module_of(capture->addresses[0], &module))
        capture->count = 0;
}

static void test_a_destructor_captures_as_its_object_is_unloaded(void **state)
{
    struct capture capture = {.most = ASKED};
    (void)state;
    chain.at_unload(take_and_find, &capture);
    assert_int_equal(dlclose(chain.handle), 0);
    assert_int_equal(open_chain(chain_path), 0);
    assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
}

static void take_and_find_through_the_chain(void *argument)
{
    chain.outer(take_and_find, argument);
    __asm__ volatile("" ::: "memory");
}

static void take_at_the_end_of_a_thread(void *argument)
{
    call(take_and_find_through_the_chain, argument);
}

static void *end_with_a_key(void *argument)
{
    void **arguments = argument;
    pthread_setspecific(*(pthread_key_t *)arguments[0], arguments[1]);
    return NULL;
}

static void test_the_destructor_of_a_thread_captures(void **state)
{
    struct capture capture = {.most = ASKED};
    pthread_key_t key;
    pthread_t thread;
    void *arguments[] = {&key, &capture};
    (void)state;
    assert_int_equal(pthread_key_create(&key, take_at_the_end_of_a_thread), 0);
    for
        BOTH_WAYS
        {
            capture.count = 0;
            assert_int_equal(pthread_create(&thread, NULL, end_with_a_key, arguments), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
            assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
        }
    pthread_key_delete(key);
}

static void test_code_made_at_run_time_is_a_frame_but_in_no_module(void **state)
{
    struct capture capture = {.most = ASKED};
    struct native_module module;
    (void)state;
    if (!IS_SLOW_KNOWN) {
        CANNOT_BE_SEEN("the code is written for x86-64");
        return;
    }
    is_slow = true;
    call(take, &capture);
    assert_true(capture.count >= 1);
    assert_int_equal(capture.addresses[0], (uintptr_t)code_page + CODE_RETURNS_TO);
    assert_false(native_module_of(capture.addresses[0], &module));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_capture_may_be_on_the_least_stack),
        cmocka_unit_test(test_the_first_capture_and_later_ones_keep_errno),
        cmocka_unit_test(test_the_callers_return_addresses_come_innermost_first),
        cmocka_unit_test(test_the_same_place_gives_the_same_frames_and_another_others),
        cmocka_unit_test(test_frames_of_this_object_are_left_out_wherever_they_stand),
        cmocka_unit_test(test_more_of_our_own_frames_than_foreseen_cost_none_of_the_others),
        cmocka_unit_test(test_no_more_frames_come_than_were_asked_for),
        cmocka_unit_test(test_threads_capture_at_once),
        cmocka_unit_test(test_a_child_captures_that_was_forked_amid_captures),
        cmocka_unit_test(test_a_destructor_captures_as_its_object_is_unloaded),
        cmocka_unit_test(test_the_destructor_of_a_thread_captures),
        cmocka_unit_test(test_code_made_at_run_time_is_a_frame_but_in_no_module),
    };
    if (argc < 2) {
        fprintf(stderr, "usage: test_native_frames CHAIN\n");
        return 2;
    }
    chain_path = argv[1];
    return cmocka_run_group_tests_name("native_frames", tests, set_up, tear_down);
}
