/* SPDX-License-Identifier: MIT
 *
 * shim/native_frames.c. This program holds the functions under test, so its own frames are those
 * that are left out, as the library's are in it. What is left are the frames of native_chain.c,
 * which it opens at run time, and of the C library.
 *
 *   usage: test_native_frames CHAIN
 */
#include "unit.h"

#include "native_chain.h"
#include "native_frames.h"

#include "../cannot.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LEAST_STACK = 1 << 20 }; /* the sanitizers themselves want more */
#else
enum { LEAST_STACK = 16384 };
#endif

enum { ASKED = 14, CHAIN_FRAMES = 3, THREADS = 4, CAPTURES = 500 };

static const char *chain_path;

static struct {
    void *handle;
    __typeof__(chain_outer) *outer, *middle, *inner;
    __typeof__(chain_deep) *deep;
    __typeof__(chain_at_unload) *at_unload;
} chain;

struct capture {
    unsigned most, count;
    uint64_t addresses[NATIVE_FRAMES_MOST + 2];
};

/* The function that a return address lies in. */
static void *function_of(uint64_t address)
{
    Dl_info info;
    return address && dladdr((void *)(uintptr_t)(address - 1), &info) ? info.dli_saddr : NULL;
}

static bool is_chain(const uint64_t addresses[CHAIN_FRAMES])
{
    return function_of(addresses[0]) == (void *)chain.inner &&
           function_of(addresses[1]) == (void *)chain.middle &&
           function_of(addresses[2]) == (void *)chain.outer;
}

/* Called through the chain; this and what called the chain are frames of this program. */
static void take(void *argument)
{
    struct capture *capture = argument;
    capture->count = native_frames(capture->addresses, capture->most);
}

static void take_through_the_chain_again(void *argument)
{
    chain.outer(take, argument);
    __asm__ volatile("" ::: "memory");
}

static struct capture captured(void)
{
    struct capture capture = {.most = ASKED};
    chain.outer(take, &capture);
    return capture;
}

static int open_chain(void **state)
{
    (void)state;
    chain.handle = dlopen(chain_path, RTLD_NOW | RTLD_LOCAL);
    if (!chain.handle)
        return -1;
    chain.outer = (__typeof__(chain.outer))dlsym(chain.handle, "chain_outer");
    chain.middle = (__typeof__(chain.middle))dlsym(chain.handle, "chain_middle");
    chain.inner = (__typeof__(chain.inner))dlsym(chain.handle, "chain_inner");
    chain.deep = (__typeof__(chain.deep))dlsym(chain.handle, "chain_deep");
    chain.at_unload = (__typeof__(chain.at_unload))dlsym(chain.handle, "chain_at_unload");
    return 0;
}

static int close_chain(void **state)
{
    (void)state;
    return dlclose(chain.handle);
}

/* Runs something in a child of its own, as it wants a process in which nothing has been captured,
 * or is about forks. Returns whether it said true: then the child kills itself, lest a sanitizer
 * miss the threads that a fork does not have. */
static bool says_true_in_a_child(bool (*run)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (run())
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void *take_on_a_thread(void *argument)
{
    chain.outer(take, argument);
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
    assert_true(says_true_in_a_child(first_capture_on_the_least_stack));
}

static void test_the_first_capture_and_later_ones_keep_errno(void **state)
{
    (void)state;
    assert_true(says_true_in_a_child(first_capture_keeps_errno));
    assert_true(first_capture_keeps_errno());
    assert_true(first_capture_keeps_errno());
}

static void test_the_callers_return_addresses_come_innermost_first(void **state)
{
    (void)state;
    struct capture capture = captured();
    assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
    assert_true(is_chain(capture.addresses));
}

static void test_the_same_place_gives_the_same_frames_and_another_others(void **state)
{
    struct capture capture[3];
    (void)state;
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
    chain.outer(take_through_the_chain_again, &capture);
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

static void test_more_of_our_own_frames_than_foreseen_cost_none_of_the_others(void **state)
{
    struct capture shallow = {.most = CHAIN_FRAMES}, deep = {.most = CHAIN_FRAMES};
    (void)state;
    chain.outer(take, &shallow);
    chain.outer(take_ten_below, &deep);
    assert_true(is_chain(shallow.addresses));
    assert_int_equal(deep.count, CHAIN_FRAMES);
    assert_true(is_chain(deep.addresses));
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
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many_on_a_thread, &capture[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_in_range(capture[i].count, CHAIN_FRAMES, ASKED);
        assert_true(is_chain(capture[i].addresses));
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
    assert_int_equal(pthread_create(&thread, NULL, take_many_on_a_thread, &capture), 0);
    for (int i = 0; i < 10; i++)
        assert_true(says_true_in_a_child(captures));
    assert_int_equal(pthread_join(thread, NULL), 0);
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
    assert_int_equal(open_chain(state), 0);
    assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
}

static void take_at_the_end_of_a_thread(void *argument)
{
    chain.outer(take_and_find, argument);
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
    assert_int_equal(pthread_create(&thread, NULL, end_with_a_key, arguments), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_key_delete(key);
    assert_in_range(capture.count, CHAIN_FRAMES, ASKED);
}

#if defined(__x86_64__)
/* A page of code that no object has: sub $8,%rsp; call *%rdx; add $8,%rsp; ret */
static void *write_code(void)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd2,
                                   0x48, 0x83, 0xc4, 0x08, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, code, sizeof code);
    assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
    return page;
}

static void test_code_made_at_run_time_is_a_frame_but_in_no_module(void **state)
{
    struct capture capture = {.most = ASKED};
    struct native_module module;
    void *page = write_code();
    void (*jump)(void *, void *, void (*)(void *)) =
        (void (*)(void *, void *, void (*)(void *)))page;
    (void)state;
    jump(&capture, NULL, take);
    assert_true(capture.count >= 1);
    assert_int_equal(capture.addresses[0], (uintptr_t)page + 6);
    assert_false(native_module_of(capture.addresses[0], &module));
    munmap(page, 4096);
}
#else
static void test_code_made_at_run_time_is_a_frame_but_in_no_module(void **state)
{
    (void)state;
    CANNOT_BE_SEEN("the code is written for x86-64");
}
#endif

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
    return cmocka_run_group_tests_name("native_frames", tests, open_chain, close_chain);
}
