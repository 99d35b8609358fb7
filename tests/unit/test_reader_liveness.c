/* SPDX-License-Identifier: MIT
 *
 * Live, exited or stale: by the writer's word, by its lock, by its identity, in this order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpulimit/reader.h"
#include "ledger_fixture.h"

static void test_expect(enum gpulimit_state expected, int32_t lock_pid)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger;

    assert_int_equal(gpulimit_reader_open(fixture_path, GPULIMIT_READER_SUMMARY, reason, &ledger),
                     GPULIMIT_READER_OK);
    assert_string_equal(gpulimit_reader_state_name(ledger->state),
                        gpulimit_reader_state_name(expected));
    assert_int_equal(ledger->lock_pid, lock_pid);
    gpulimit_reader_close(ledger);
}

enum test_writer { LOCKED, MAPPED, NEITHER };

/* A child that writes the ledger as its own, locks it or maps it, and lives until it is killed. */
static pid_t test_start_writer(enum test_writer how)
{
    int ready[2];
    char byte;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        struct fixture fixture;

        fixture_open(&fixture, 60);
        fixture_set_identity(&fixture);
        fixture_write(&fixture, fixture_path);
        if (how == LOCKED) {
            fixture_lock(fixture_path);
        } else if (how == MAPPED) {
            fixture_map(fixture_path);
        }
        close(ready[1]);
        for (;;) {
            pause();
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return child;
}

static void test_write(uint64_t ended_time_ns, void (*change)(struct gpulimit_header *header))
{
    struct fixture fixture;

    fixture_open(&fixture, 60);
    fixture_set_identity(&fixture);
    fixture.header->ended_time_ns = ended_time_ns;
    if (change) {
        change(fixture.header);
    }
    fixture_write(&fixture, fixture_path);
    fixture_close(&fixture);
}

static void test_lock_shows_life_in_any_namespace(void **state)
{
    pid_t child = test_start_writer(LOCKED);
    struct fixture fixture;

    (void)state;
    test_expect(GPULIMIT_STATE_LIVE, child);
    fixture_open(&fixture, 60); /* pid 4121, another machine's start for all that it says */
    fixture_write(&fixture, fixture_path);
    fixture_close(&fixture);
    test_expect(GPULIMIT_STATE_LIVE, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    test_expect(GPULIMIT_STATE_STALE, 0);
}

static void test_identity_shows_life_without_a_lock(void **state)
{
    pid_t child = test_start_writer(MAPPED);

    (void)state;
    test_expect(GPULIMIT_STATE_LIVE, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    test_expect(GPULIMIT_STATE_STALE, 0);
}

/* Of the process that an exec has made of it, the number and the start are the same. */
static void test_another_program_in_its_place_is_not_the_writer(void **state)
{
    pid_t child = test_start_writer(NEITHER);

    (void)state;
    test_expect(GPULIMIT_STATE_STALE, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_zombie_is_stale(void **state)
{
    pid_t child = test_start_writer(MAPPED);
    siginfo_t info;

    (void)state;
    kill(child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    test_expect(GPULIMIT_STATE_STALE, 0);
    waitpid(child, NULL, 0);
}

static void test_the_writers_word_counts_most(void **state)
{
    (void)state;
    test_write(1, NULL);
    test_expect(GPULIMIT_STATE_EXITED, 0);
}

static void test_change_ticks(struct gpulimit_header *header)
{
    header->start_ticks++;
}

static void test_change_boot(struct gpulimit_header *header)
{
    header->boot_id[0] = header->boot_id[0] == 'a' ? 'b' : 'a';
}

static void test_change_namespace(struct gpulimit_header *header)
{
    header->pid_namespace++;
}

static void test_reused_pid_is_stale(void **state)
{
    (void)state;
    test_write(0, test_change_ticks);
    test_expect(GPULIMIT_STATE_STALE, 0);
}

static void test_pid_of_another_boot_or_namespace_is_stale(void **state)
{
    (void)state;
    test_write(0, test_change_boot);
    test_expect(GPULIMIT_STATE_STALE, 0);
    test_write(0, test_change_namespace);
    test_expect(GPULIMIT_STATE_STALE, 0);
}

static void test_brackets_and_blanks_in_the_name_do_not_confuse(void **state)
{
    void *page;

    (void)state;
    assert_int_equal(prctl(PR_SET_NAME, "a) Z 1 (b) ", 0, 0, 0), 0);
    test_write(0, NULL);
    page = fixture_map(fixture_path);
    test_expect(GPULIMIT_STATE_LIVE, getpid());
    munmap(page, FIXTURE_PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_shows_life_in_any_namespace),
        cmocka_unit_test(test_identity_shows_life_without_a_lock),
        cmocka_unit_test(test_another_program_in_its_place_is_not_the_writer),
        cmocka_unit_test(test_zombie_is_stale),
        cmocka_unit_test(test_the_writers_word_counts_most),
        cmocka_unit_test(test_reused_pid_is_stale),
        cmocka_unit_test(test_pid_of_another_boot_or_namespace_is_stale),
        cmocka_unit_test(test_brackets_and_blanks_in_the_name_do_not_confuse),
    };

    return cmocka_run_group_tests(tests, fixture_make_path, fixture_remove_path);
}
