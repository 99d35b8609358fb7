/* SPDX-License-Identifier: MIT
 *
 * shim/tell_refusals.c: how often refusals are spoken of, by one thread and by many. This program
 * has a clock of its own: what libc's clock_gettime says, and as many seconds more as a test likes.
 */
#include "unit.h"

#include "limit.h"
#include "start.h"
#include "tell.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long skipped_seconds;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long result = syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += skipped_seconds;
    return (int)result;
}

static char log_path[] = "/tmp/test_tell.XXXXXX";

static void reclaim(unsigned device)
{
    (void)device;
}

static bool card_free(unsigned device, uint64_t *free_bytes)
{
    *free_bytes = MIB(7000);
    errno = ENOSYS; /* as whatever the driver does may leave it */
    return device == 0;
}

static int start(void **state)
{
    static const struct start_driver driver = {
        .reclaim = reclaim, .look = reclaim, .card_free = card_free};
    (void)state;
    close(mkstemp(log_path));
    setenv("GPU_LIMIT_MB", "0=1G", 1);
    setenv("GPU_LIMIT_DIR", "/nonexistent", 1);
    setenv("GPU_LIMIT_LOG", log_path, 1);
    setenv("GPU_LIMIT_REPORT_DIR", "none", 1);
    if (!start_process(&driver))
        return 1;
    start_add_device(0, "GPU-0", MIB(8192));
    start_add_device(1, "GPU-1", MIB(8192));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return unlink(log_path);
}

/* As in a process that has been told nothing yet. */
static int forget(void **state)
{
    (void)state;
    tell_reset();
    return truncate(log_path, 0);
}

/* What has been said since the last time that somebody asked. */
static const char *said(void)
{
    static char text[1 << 16];
    FILE *file = fopen(log_path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(truncate(log_path, 0), 0);
    return text;
}

static unsigned times(const char *text, const char *words)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

static void refuse(unsigned device, uint64_t bytes)
{
    struct ticket ticket;
    assert_false(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, device, 0xc0, API_cuMemAlloc_v2, bytes));
}

static void test_of_200_refusals_the_first_is_explained_and_a_line_in_10_s_is_said(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++)
        refuse(0, MIB(2000 + i));
    const char *text = said();
    assert_int_equal(times(text, "refused"), 1);
    assert_int_equal(times(text, "\n"), 4);
    skipped_seconds += 9;
    refuse(0, MIB(2000));
    assert_string_equal(said(), "");
    skipped_seconds += 2;
    for (unsigned i = 0; i < 200; i++)
        refuse(0, MIB(2000));
    text = said();
    static const char line[] = "gpulimit: refused 201 more requests (largest 2199 MiB) on GPU 0 "
                               "since ";
    assert_int_equal(strncmp(text, line, sizeof line - 1), 0);
    assert_int_equal(times(text, "\n"), 1);
}

static void test_each_device_has_a_first_refusal_of_its_own(void **state)
{
    (void)state;
    refuse(0, MIB(2000));
    refuse(1, MIB(1));
    refuse(1, MIB(1));
    const char *text = said();
    assert_int_equal(times(text, "gpulimit: refused 2000 MiB on GPU 0: "), 1);
    assert_int_equal(times(text, "on GPU 1: this GPU is not named in GPU_LIMIT_MB=0=1G"), 1);
    assert_int_equal(times(text, "refused"), 2);
}

static void *refuse_often(void *barrier)
{
    struct ticket ticket;
    pthread_barrier_wait(barrier);
    for (unsigned i = 0; i < 100; i++)
        (void)limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, 0xc0, API_cuMemAlloc_v2, MIB(2000));
    return NULL;
}

static void test_of_threads_that_are_refused_at_once_one_explains(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    (void)state;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, refuse_often, &barrier), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(times(said(), "refused"), 1);
    skipped_seconds += 11;
    refuse(0, MIB(2000));
    assert_int_equal(times(said(), "refused 800 more requests (largest 2000 MiB)"), 1);
}

static void test_what_the_driver_refuses_is_said_once_and_is_no_refusal_of_ours(void **state)
{
    struct ticket ticket;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_true(
            limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, 0xc0, API_cuMemAlloc_v2, MIB(100)));
        limit_cancel(&ticket);
        errno = 0;
        limit_driver_refused(&ticket);
        assert_int_equal(errno, 0);
    }
    const char *text = said();
    assert_int_equal(times(text,
                           "gpulimit: the driver, not the limit, refused 100 MiB on GPU 0: for "
                           "a reason of its own, with 7000 MiB free of 8192 MiB (0 bytes of "
                           "GPU_LIMIT_MB=0=1G in use).\n"),
                     1);
    assert_int_equal(times(text, "\n"), 4);
    tell_end();
    assert_string_equal(said(), "");
}

/* The books are the process's, so what they say at the end is of all tests. */
static void test_the_end_has_a_line_for_each_device_that_refused(void **state)
{
    (void)state;
    tell_end();
    assert_string_equal(said(), ""); /* nothing was refused since what would be a fork */
    for (unsigned i = 0; i < 2; i++) {
        refuse(0, MIB(2000));
        refuse(1, MIB(1));
    }
    (void)said();
    errno = 0;
    tell_end();
    assert_int_equal(errno, 0);
    const char *text = said();
    assert_int_equal(strncmp(text, "gpulimit: GPU 0 peak 0 bytes of 1024 MiB, ", 42), 0);
    assert_int_equal(times(text, "\ngpulimit: GPU 1 is not named in GPU_LIMIT_MB=0=1G, "), 1);
    assert_int_equal(times(text, " requests refused, and 3 by the driver itself.\n"), 1);
    assert_int_equal(times(text, " requests refused.\n"), 1);
    assert_int_equal(times(text, "\n"), 2);
}

static void test_errno_is_left_as_it_was(void **state)
{
    (void)state;
    errno = 0;
    refuse(0, MIB(2000));
    assert_int_equal(errno, 0);
    assert_int_equal(times(said(), "The GPU itself still has 7000 MiB free"), 1);
}

#define TELLS(_test) cmocka_unit_test_setup(_test, forget)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TELLS(test_of_200_refusals_the_first_is_explained_and_a_line_in_10_s_is_said),
        TELLS(test_each_device_has_a_first_refusal_of_its_own),
        TELLS(test_of_threads_that_are_refused_at_once_one_explains),
        TELLS(test_what_the_driver_refuses_is_said_once_and_is_no_refusal_of_ours),
        TELLS(test_the_end_has_a_line_for_each_device_that_refused),
        TELLS(test_errno_is_left_as_it_was),
    };
    return cmocka_run_group_tests_name("tell", tests, start, stop);
}
