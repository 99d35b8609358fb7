/* SPDX-License-Identifier: MIT
 *
 * shim/neighbours.c: who else holds memory of a GPU, by ledgers of living and dead processes, and
 * by files that only look like ledgers.
 */
#include "unit.h"

#include "identity.h"
#include "ledger_fixture.h"
#include "neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UUID "GPU-0000abc0-1111-2222-3333-444444444444" /* of the fixture's device 0 */

static char folder[32];
static struct fixture fixture;
static struct neighbours found;
static pid_t writers[128];
static unsigned writer_count;

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/gpulimit.%s", folder, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_neighbours.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    return 0;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    fixture_close(&fixture);
    while (writer_count > 0) {
        kill(writers[--writer_count], SIGKILL);
        waitpid(writers[writer_count], NULL, 0);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): a fixed command */
}

/* Puts the fixture down as the ledger of another process, which lives until it is killed. Returns
 * its pid. */
static pid_t begin_writer(const char *name, bool is_locked)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t writer = fork();
    if (writer == 0) {
        close(ready[0]);
        if (!is_locked)
            identity_fill(fixture.header);
        fixture_write(&fixture, path_of(name));
        if (is_locked)
            fixture_lock(path_of(name));
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    writers[writer_count++] = writer;
    return writer;
}

static void find(void)
{
    errno = ENOTTY;
    neighbours_find(&found, folder, path_of("own"), UUID);
    assert_int_equal(errno, ENOTTY);
}

static void assert_found(unsigned at, pid_t pid, unsigned mib, const char *command)
{
    assert_true(at < found.named_count);
    assert_int_equal(found.named[at].pid, pid);
    assert_int_equal(found.named[at].uid, getuid());
    assert_int_equal(found.named[at].bytes, MIB(mib));
    assert_string_equal(found.named[at].command, command);
}

static void test_an_empty_folder_and_none_have_nobody(void **state)
{
    (void)state;
    find();
    assert_int_equal(found.named_count, 0);
    assert_true(found.is_complete);
    neighbours_find(&found, "/nonexistent", "", UUID);
    assert_int_equal(found.named_count, 0);
    assert_false(found.is_complete);
}

static void test_the_living_are_named_the_largest_first(void **state)
{
    (void)state;
    pid_t small = begin_writer("1", true);
    fixture_set_command(&fixture, "/usr/bin/trainer", sizeof "/usr/bin/trainer");
    fixture.devices[0].committed_bytes = MIB(100);
    fixture.devices[0].overhead_bytes = MIB(20);
    pid_t large = begin_writer("2", true);
    find();
    assert_int_equal(found.named_count, 2);
    assert_found(0, large, 120, "trainer");
    assert_found(1, small, 64, "python train.py");
    assert_int_equal(found.others, 0);
    assert_true(found.is_complete);
}

/* It may have closed all its descriptors, or have become another program by an exec. */
static void test_who_runs_without_the_lock_is_left_out(void **state)
{
    (void)state;
    begin_writer("1", false);
    find();
    assert_int_equal(found.named_count, 0);
    assert_false(found.is_complete);
}

static void test_the_dead_hold_nothing(void **state)
{
    (void)state;
    fixture_write(&fixture, path_of("1")); /* pid 4121 of another boot, and no lock */
    pid_t killed = begin_writer("2", true);
    kill(killed, SIGKILL);
    waitpid(killed, NULL, 0);
    writer_count--;
    killed = begin_writer("3", false);
    kill(killed, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)killed, &info, WEXITED | WNOWAIT), 0);
    find(); /* a zombie is dead */
    assert_int_equal(found.named_count, 0);
    assert_true(found.is_complete);
    fixture.header->ended_time_ns = 1;
    begin_writer("4", true);
    find();
    assert_int_equal(found.named_count, 0);
}

static void test_other_gpus_do_not_count(void **state)
{
    (void)state;
    fixture_add_device(&fixture, 1);
    fixture.devices[1].committed_bytes = MIB(5000);
    pid_t both = begin_writer("1", true);
    fixture.devices[0].in_use = 0;
    begin_writer("2", true);
    find();
    assert_int_equal(found.named_count, 1);
    assert_found(0, both, 64, "python train.py");
    fixture.devices[5].in_use = 1;
    fixture.devices[5].committed_bytes = MIB(7);
    strcpy(fixture.devices[5].gpu_uuid, UUID);
    memcpy(fixture.devices[5].gpu_uuid, "MIG", 3); /* as NVML may call the same part of a card */
    pid_t third = begin_writer("3", true);
    find();
    assert_int_equal(found.named_count, 2);
    assert_found(1, third, 7, "python train.py");
}

/* Whether this process's own lock on a file is there, as another process sees it. */
static bool has_own_lock(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
        int file = open(path, O_RDONLY | O_CLOEXEC);
        _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

static void test_the_own_ledger_is_never_opened(void **state)
{
    char own[128];
    (void)state;
    identity_fill(fixture.header);
    strcpy(own, path_of("own"));
    fixture_write(&fixture, own);
    int file = fixture_lock(own);
    assert_int_equal(link(own, path_of("another-name")), 0);
    find();
    assert_int_equal(found.named_count, 0);
    assert_true(has_own_lock(own));
    close(file);
}

static void test_the_program_before_an_exec_is_no_neighbour(void **state)
{
    (void)state;
    identity_fill(fixture.header);
    fixture_write(&fixture, path_of("before"));
    find();
    assert_int_equal(found.named_count, 0);
}

static void put_bytes(const char *name, const char *bytes, size_t size)
{
    int file = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

static void test_files_that_are_no_ledgers_are_left_out(void **state)
{
    (void)state;
    pid_t real = begin_writer("1", true);
    assert_int_equal(symlink(path_of("1"), "/tmp/test_neighbours.link"), 0);
    assert_int_equal(rename("/tmp/test_neighbours.link", path_of("link")), 0);
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_int_equal(mkdir(path_of("folder"), 0700), 0);
    find();
    assert_int_equal(found.named_count, 1);
    assert_true(found.is_complete);
    put_bytes("empty", "", 0);
    put_bytes("short", "GPULIMIT", 8);
    put_bytes("text", "no ledger at all", 16);
    find();
    assert_int_equal(found.named_count, 1);
    assert_found(0, real, 64, "python train.py");
    assert_false(found.is_complete);
}

static void begin_damaged(const char *name, void (*damage)(void))
{
    fixture_close(&fixture);
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    damage();
    begin_writer(name, true);
}

static void damage_version(void)
{
    fixture.header->version = 2;
}

static void damage_sizes(void)
{
    fixture.header->device_bytes = 0;
}

static void damage_offset(void)
{
    fixture.header->devices_offset = UINT32_MAX;
}

static void damage_pid(void)
{
    fixture.header->pid = -1;
}

static void damage_sequence(void)
{
    fixture.devices[0].sequence = 7;
}

static void damage_bytes(void)
{
    fixture.devices[0].committed_bytes = UINT64_MAX - 5;
    fixture.devices[0].overhead_bytes = 10;
}

static void damage_size(void)
{
    fixture.size = GPULIMIT_DEVICES_OFFSET + 100;
}

static void test_damaged_ledgers_are_left_out(void **state)
{
    static void (*const damages[])(void) = {damage_version, damage_sizes, damage_offset,
                                            damage_pid,     damage_bytes, damage_size,
                                            damage_sequence};
    (void)state;
    for (unsigned i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        begin_damaged(name, damages[i]);
        find();
        assert_int_equal(found.named_count, 0);
        assert_false(found.is_complete);
        assert_int_equal(unlink(path_of(name)), 0);
    }
}

static void test_names_are_fit_to_be_read(void **state)
{
    static const char arguments[] = "./a\nb\0--x=\x1b[31m";
    (void)state;
    fixture_set_command(&fixture, arguments, sizeof arguments);
    fixture.devices[0].committed_bytes = MIB(9);
    pid_t first = begin_writer("1", true);
    memset(fixture.header->command, 'x', sizeof fixture.header->command);
    fixture.header->command_bytes = sizeof fixture.header->command;
    fixture.devices[0].committed_bytes = MIB(8);
    begin_writer("2", true);
    fixture.header->command_bytes = UINT32_MAX;
    fixture.devices[0].committed_bytes = MIB(7);
    pid_t last = begin_writer("3", true);
    find();
    assert_int_equal(found.named_count, 3);
    assert_found(0, first, 9, "a?b --x=?[31m");
    assert_int_equal(strlen(found.named[1].command), NEIGHBOURS_COMMAND_BYTES - 1);
    assert_found(2, last, 7, "?");
}

static void test_of_many_the_largest_are_named_and_the_work_is_bounded(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 70; i++) {
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        fixture.devices[0].committed_bytes = MIB(1 + i * 7 % 20);
        begin_writer(name, true);
        if (i == 19) {
            find();
            assert_int_equal(found.named_count, NEIGHBOURS_NAMED);
            for (unsigned j = 0; j < NEIGHBOURS_NAMED; j++)
                assert_int_equal(found.named[j].bytes, MIB(20 - j));
            assert_int_equal(found.others, 4);
            assert_int_equal(found.others_bytes, MIB(1 + 2 + 3 + 4));
            assert_true(found.is_complete);
        }
    }
    find();
    assert_int_equal(found.named_count + found.others, 64);
    assert_false(found.is_complete);
}

/* Bytes of a living process's ledger change at random: what comes of it is within its bounds. */
static void test_no_damage_is_too_much(void **state)
{
    uint64_t random = 88172645463325252u;
    (void)state;
    begin_writer("1", true);
    int file = open(path_of("1"), O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    for (unsigned i = 0; i < 3000; i++) {
        if (i % 10 == 0)
            assert_int_equal(pwrite(file, fixture.image, fixture.size, 0), fixture.size);
        for (unsigned change = 0; change < 4; change++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            /* Half of them in the first of the header's words and the first device's record. */
            uint64_t place = random >> 8;
            place = change % 2 == 0 ? place % GPULIMIT_EXTENTS_OFFSET
                                    : place % 512 + (place & 512 ? GPULIMIT_DEVICES_OFFSET : 0);
            assert_int_equal(pwrite(file, &random, 1 + random % 8, (off_t)place), 1 + random % 8);
        }
        find();
        assert_true(found.named_count <= 1 && found.others == 0);
        if (found.named_count == 1)
            assert_true(strlen(found.named[0].command) < NEIGHBOURS_COMMAND_BYTES);
    }
    close(file);
}

#define NEIGHBOURS(_test) cmocka_unit_test_setup_teardown(_test, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        NEIGHBOURS(test_an_empty_folder_and_none_have_nobody),
        NEIGHBOURS(test_the_living_are_named_the_largest_first),
        NEIGHBOURS(test_who_runs_without_the_lock_is_left_out),
        NEIGHBOURS(test_the_dead_hold_nothing),
        NEIGHBOURS(test_other_gpus_do_not_count),
        NEIGHBOURS(test_the_own_ledger_is_never_opened),
        NEIGHBOURS(test_the_program_before_an_exec_is_no_neighbour),
        NEIGHBOURS(test_files_that_are_no_ledgers_are_left_out),
        NEIGHBOURS(test_damaged_ledgers_are_left_out),
        NEIGHBOURS(test_names_are_fit_to_be_read),
        NEIGHBOURS(test_no_damage_is_too_much),
        NEIGHBOURS(test_of_many_the_largest_are_named_and_the_work_is_bounded),
    };
    return cmocka_run_group_tests_name("neighbours", tests, NULL, NULL);
}
