/* SPDX-License-Identifier: MIT
 *
 * shim/python_interpreter.c: an interpreter that comes with a library, and goes with it.
 *
 *   usage: test_python_interpreter LIBRARY
 */
#include "unit.h"

#include "python_frames.h"
#include "python_interpreter.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 30, THREADS = 4, LOOKS = 20000, FORKS = 100, SECONDS_TO_HANG = 10 };

static const char *library;

static bool is_there(void)
{
    _Atomic int *trust;
    return python_interpreter_find(&trust) != NULL;
}

static void an_interpreter_is_there_as_long_as_its_library_is_loaded(void **state)
{
    (void)state;
    struct python_frame frame;
    assert_int_equal(python_frames(&frame, 1), 0);
    for (unsigned i = 0; i < TIMES; i++) {
        assert_false(is_there());
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(handle);
        const int *asked = dlsym(handle, "made_python_asked");
        assert_non_null(asked);
        assert_true(is_there());
        assert_int_equal(python_frames(&frame, 1), 0);
        assert_int_equal(*asked, 1);
        dlclose(handle);
        assert_int_equal(python_frames(&frame, 1), 0); /* who called what is gone would crash */
    }
}

static void *look(void *argument)
{
    unsigned *found = argument;
    for (unsigned i = 0; i < LOOKS; i++)
        *found += is_there();
    return NULL;
}

static void threads_that_look_at_once_find_the_same(void **state)
{
    (void)state;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    pthread_t threads[THREADS];
    unsigned found[THREADS] = {0};
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, &found[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(found[i], LOOKS);
    }
    dlclose(handle);
}

static atomic_bool is_over;

static void *look_until_it_is_over(void *argument)
{
    while (!is_over)
        is_there();
    return argument;
}

/* A child that was forked amid a look can open libraries: it kills itself then, lest a sanitizer
 * miss the threads that a fork does not have. */
static bool can_open_in_a_child(void)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_TO_HANG);
        if (dlopen(library, RTLD_NOW | RTLD_LOCAL))
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void a_child_that_was_forked_amid_a_look_opens_libraries(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    bool is_right = true;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_until_it_is_over, NULL), 0);
    for (unsigned i = 0; i < FORKS && is_right; i++)
        is_right = can_open_in_a_child();
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(is_right);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interpreter_is_there_as_long_as_its_library_is_loaded),
        cmocka_unit_test(threads_that_look_at_once_find_the_same),
        cmocka_unit_test(a_child_that_was_forked_amid_a_look_opens_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
