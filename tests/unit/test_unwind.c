/* SPDX-License-Identifier: MIT
 *
 * shim/unwind.c: the fast walk of native_frames finds what the C library's backtrace does.
 *
 *   usage: test_unwind CHAIN CHAIN_WITHOUT_BUILD_ID CHAIN_WITH_LARGER_FRAME
 */
#include "native_fixture.h"

#include "unwind.h"

#include "../cannot.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *chain_path, *larger_path;

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

/* What the C library finds, without this program's own frames, and a sanitizer's that stands before
 * them. */
static unsigned take_by_backtrace(uint64_t addresses[NATIVE_FRAMES_MOST])
{
    void *stack[2 * NATIVE_FRAMES_MOST];
    Dl_info own, found;
    bool is_ours = false;
    unsigned count = 0;
    int depth = backtrace(stack, 2 * NATIVE_FRAMES_MOST);
    dladdr((void *)native_frames, &own);
    for (int i = 0; i < depth && count < NATIVE_FRAMES_MOST; i++) {
        if (dladdr((char *)stack[i] - 1, &found) && found.dli_fbase == own.dli_fbase)
            is_ours = true;
        else if (is_ours)
            addresses[count++] = (uintptr_t)stack[i];
    }
    return count;
}

static unsigned compared, same;

/* Also called in a signal handler and on another thread: the tests look at the counts. */
static void compare_with_backtrace(void *argument)
{
    struct capture capture = {.most = NATIVE_FRAMES_MOST};
    uint64_t expected[NATIVE_FRAMES_MOST] = {0};
    (void)argument;
    take(&capture);
    compared++;
    same += take_by_backtrace(expected) == capture.count && capture.count > 0 &&
            memcmp(capture.addresses, expected, sizeof expected) == 0;
}

static void compare_through_the_chain(void *argument)
{
    chain.outer(compare_with_backtrace, argument);
    __asm__ volatile("" ::: "memory");
}

static int compare_in_qsort(const void *one, const void *other)
{
    chain.middle(compare_with_backtrace, NULL);
    return *(const int *)one - *(const int *)other;
}

static void compare_in_a_handler(int number)
{
    (void)number;
    chain.inner(compare_with_backtrace, NULL);
}

static void *compare_on_a_thread(void *argument)
{
    chain.outer(compare_with_backtrace, argument);
    return NULL;
}

static void test_the_frames_are_those_that_backtrace_finds(void **state)
{
    int numbers[] = {3, 1, 2, 5, 4};
    (void)state;
    compared = same = 0;
    for
        BOTH_WAYS
        {
            call(compare_with_backtrace, NULL);
            call(compare_through_the_chain, NULL);
        }
    is_slow = false;
    chain.deep(compare_through_the_chain, NULL, 5);
    qsort(numbers, 5, sizeof numbers[0], compare_in_qsort);
    assert_true(compared >= 2 * (IS_SLOW_KNOWN + 1) + 1 + 4);
    assert_int_equal(same, compared);
}

static void test_frames_of_other_forms_are_walked_too(void **state)
{
    pthread_t thread;
    (void)state;
    compared = same = 0;
    chain.aligned(compare_through_the_chain, NULL, 100);
    signal(SIGUSR1, compare_in_a_handler);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(pthread_create(&thread, NULL, compare_on_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(compared, 3);
    assert_int_equal(same, compared);
}

static bool keep(void *argument, uint64_t address)
{
    struct capture *capture = argument;
    capture->addresses[capture->count++] = address;
    return capture->count < NATIVE_FRAMES_MOST;
}

/* Walks by the fast way alone. The count is 0 if it gave up. */
static void walk(void *argument)
{
    struct capture *capture = argument;
    capture->count = 0;
    if (!unwind(keep, capture))
        capture->count = 0;
}

static void walk_through_the_chain(void *argument)
{
    chain.outer(walk, argument);
    __asm__ volatile("" ::: "memory");
}

/* Whether the fast way walked to the end, the chain's three frames among others. */
static bool has_walked(const struct capture *capture)
{
    for (unsigned i = 0; i + CHAIN_FRAMES < capture->count; i++) {
        if (is_chain(capture->addresses + i))
            return true;
    }
    return false;
}

/* Not on another architecture, and not with a C library before 2.35. */
static bool can_walk(void)
{
    struct capture capture;
    walk_through_the_chain(&capture);
    if (!IS_SLOW_KNOWN || !dlsym(RTLD_DEFAULT, "_dl_find_object")) {
        assert_int_equal(capture.count, 0);
        CANNOT_BE_SEEN("the C library finds no objects, or this is no x86-64");
        return false;
    }
    assert_true(has_walked(&capture));
    return true;
}

static void test_the_fast_way_gets_through_frames_of_compilers(void **state)
{
    struct capture capture;
    (void)state;
    if (!can_walk())
        return;
    chain.aligned(walk_through_the_chain, &capture, 100);
    assert_true(has_walked(&capture));
    chain.deep(walk_through_the_chain, &capture, 10);
    assert_true(has_walked(&capture));
}

static void test_the_fast_way_gives_up_where_code_belongs_to_no_object(void **state)
{
    struct capture capture = {.count = 1};
    (void)state;
    is_slow = true;
    call(walk_through_the_chain, &capture);
    assert_int_equal(capture.count, 0);
}

/* The larger one has the same calls at the same places, only its inner frame is larger. */
static void test_what_is_known_of_an_unloaded_object_is_not_believed_of_the_next(void **state)
{
    struct capture capture;
    (void)state;
    for (int i = 0; i < 6 && can_walk(); i++) {
        assert_int_equal(dlclose(chain.handle), 0);
        assert_int_equal(open_chain(i % 2 == 0 ? larger_path : chain_path), 0);
        walk_through_the_chain(&capture);
        assert_true(has_walked(&capture));
    }
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static bool loads_no_unwinder_but_where_it_must(void)
{
    is_slow = false;
    struct capture capture = captured();
    bool is_loaded = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL;
    is_slow = true;
    capture = captured();
    return capture.count >= CHAIN_FRAMES && !is_loaded &&
           dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void test_an_ordinary_capture_loads_nothing(void **state)
{
    (void)state;
    assert_true(says_true_in_a_child(loads_no_unwinder_but_where_it_must));
}
#else
static void test_an_ordinary_capture_loads_nothing(void **state)
{
    (void)state;
    CANNOT_BE_SEEN("the unwinder is loaded already, or is the only way");
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_ordinary_capture_loads_nothing), /* while nobody has loaded it */
        cmocka_unit_test(test_the_frames_are_those_that_backtrace_finds),
        cmocka_unit_test(test_frames_of_other_forms_are_walked_too),
        cmocka_unit_test(test_the_fast_way_gets_through_frames_of_compilers),
        cmocka_unit_test(test_the_fast_way_gives_up_where_code_belongs_to_no_object),
        cmocka_unit_test(test_what_is_known_of_an_unloaded_object_is_not_believed_of_the_next),
    };
    if (argc < 4) {
        fprintf(stderr,
                "usage: test_unwind CHAIN CHAIN_WITHOUT_BUILD_ID CHAIN_WITH_LARGER_FRAME\n");
        return 2;
    }
    chain_path = argv[1];
    larger_path = argv[3];
    return cmocka_run_group_tests_name("unwind", tests, set_up, tear_down);
}
