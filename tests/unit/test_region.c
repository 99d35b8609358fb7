/* SPDX-License-Identifier: MIT
 *
 * shim/region.c, identity.c and sweep.c: the file that others read. Each test works in a folder of
 * its own.
 */
#include "unit.h"

#include "region.h"
#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const apis[] = {"cuMemAlloc_v2", "cuMemCreate"};
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/gpulimit-test-region-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *file = readdir(open); file; file = readdir(open))
        count += strncmp(file->d_name, GPULIMIT_REGION_PREFIX, strlen(GPULIMIT_REGION_PREFIX)) == 0;
    closedir(open);
    return count;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    region_forget();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static bool open_region(void)
{
    const char *reason = NULL;
    return region_open(folder, "1024", GPULIMIT_COUNT_PROCESS, apis, 2, &reason);
}

/* The file as a reader maps it. */
static const unsigned char *map_file(size_t *bytes)
{
    struct stat status;
    int file = open(region_path(), O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &status), 0);
    void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    /* Not closed: that would drop this process's lock on it. The test ends soon. */
    *bytes = (size_t)status.st_size;
    return memory;
}

static void test_the_file_says_whose_it_is(void **state)
{
    size_t bytes;
    struct stat status;
    (void)state;
    assert_true(open_region());
    const struct gpulimit_header *header = (const void *)map_file(&bytes);
    assert_memory_equal(header->magic, GPULIMIT_REGION_MAGIC, 8);
    assert_int_equal(header->version, GPULIMIT_REGION_VERSION);
    assert_int_equal(header->pid, getpid());
    assert_int_equal(header->uid, getuid());
    assert_true(header->start_ticks > 0);
    assert_true(header->pid_namespace > 0);
    assert_int_equal(strlen(header->boot_id), 36);
    assert_string_equal(header->limit_text, "1024");
    assert_non_null(strstr(header->command, "test_region"));
    assert_int_equal(atomic_load(&header->ended_time_ns), 0);
    assert_int_equal(stat(region_path(), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void test_entries_lie_where_the_extents_say(void **state)
{
    enum { ENTRIES = 3000 };
    size_t bytes;
    (void)state;
    assert_true(open_region());
    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct gpulimit_entry entry = {.place = GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 1),
                                       .address = 1000 + i};
        assert_true(region_put_entry(i, &entry));
    }
    region_drop_entry(7);
    const unsigned char *file = map_file(&bytes);
    const struct gpulimit_header *header = (const void *)file;
    uint32_t number = 0;
    for (uint32_t i = 0; i < atomic_load(&header->extents_used); i++) {
        const struct gpulimit_extent *extent = &header->extents[i];
        if (extent->section == GPULIMIT_SECTION_APIS)
            assert_string_equal((const char *)file + extent->offset + GPULIMIT_API_BYTES,
                                "cuMemCreate");
        if (extent->section != GPULIMIT_SECTION_ENTRIES)
            continue;
        const struct gpulimit_entry *entries = (const void *)(file + extent->offset);
        assert_true(extent->offset + extent->count * sizeof *entries <= bytes);
        for (uint32_t j = 0; j < extent->count && number < ENTRIES; j++, number++) {
            assert_int_equal(atomic_load(&entries[j].sequence) % 2, 0);
            assert_int_equal(atomic_load(&entries[j].address), 1000 + number);
            assert_int_equal(GPULIMIT_PLACE_KIND(atomic_load(&entries[j].place)),
                             number == 7 ? GPULIMIT_KIND_NONE : GPULIMIT_KIND_LINEAR);
        }
    }
    assert_int_equal(number, ENTRIES);
}

static void test_without_a_folder_all_goes_on_without_a_file(void **state)
{
    const char *reason = NULL;
    struct gpulimit_entry entry = {0};
    struct region_totals totals = {0};
    (void)state;
    assert_false(region_open("/nonexistent", "", GPULIMIT_COUNT_PROCESS, apis, 2, &reason));
    assert_string_equal(reason, "No such file or directory");
    assert_string_equal(region_path(), "");
    assert_false(region_put_entry(0, &entry));
    region_drop_entry(0);
    region_put_device(0, &totals, GPULIMIT_KIND_LINEAR);
    region_put_unlisted(1);
    region_end();
}

/* A full file system is played by a limit on file sizes, which also kills whoever oversteps it. */
static void test_a_full_folder_costs_entries_and_no_sigbus(void **state)
{
    pid_t child = fork();
    int status;
    (void)state;
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 256 << 10, .rlim_max = 256 << 10};
        if (!open_region() || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(10);
        struct gpulimit_entry entry = {.place = GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0)};
        uint32_t listed = 0;
        for (uint32_t i = 0; i < 100000; i++)
            listed += region_put_entry(i, &entry);
        _exit(listed >= 512 && listed < 4096 ? 0 : 11);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Whoever counts along knows what number the next one has: there is none behind a gap. */
static void test_a_section_that_was_full_once_stays_full(void **state)
{
    static const struct gpulimit_site site = {.native_count = 1};
    static const char text[GPULIMIT_TEXT_BYTES] = "text";
    struct rlimit before, limit;
    uint32_t count = 0;
    (void)state;
    assert_true(open_region());
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 256 << 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (region_append(GPULIMIT_SECTION_SITES, &site) == count + 1)
        count++;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(count > 0 && count < 512);
    assert_int_equal(region_append(GPULIMIT_SECTION_SITES, &site), 0);
    assert_int_equal(region_append(GPULIMIT_SECTION_TEXTS, text), 1);
}

static void test_a_forked_child_leaves_the_file_alone(void **state)
{
    size_t bytes;
    int status;
    (void)state;
    assert_true(open_region());
    pid_t child = fork();
    if (child == 0) {
        struct gpulimit_entry entry = {.place = GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0)};
        region_forget();
        region_end();
        _exit(region_put_entry(0, &entry) || region_path()[0] != '\0');
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    const struct gpulimit_header *header = (const void *)map_file(&bytes);
    assert_int_equal(atomic_load(&header->ended_time_ns), 0);
}

static void test_the_descriptor_is_out_of_the_way_and_closed_on_exec(void **state)
{
    (void)state;
    int next = dup(0);
    close(next);
    assert_true(open_region());
    int after = dup(0);
    close(after);
    assert_int_equal(after, next);
    for (int file = 3; file < 1024; file++) {
        char link[64], target[256] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        if (readlink(link, target, sizeof target - 1) > 0 && strcmp(target, region_path()) == 0)
            assert_int_equal(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
}

/* Leaves the ledger of a process that is no more. */
static void make_dead_ledger(bool was_killed)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (!open_region())
            _exit(1);
        if (!was_killed)
            region_end();
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void test_dead_ledgers_stay_up_to_a_number(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SWEEP_KEEP + 5; i++)
        make_dead_ledger(i % 2);
    assert_int_equal(count_files(), SWEEP_KEEP + 5);
    sweep_dead_ledgers(folder);
    assert_int_equal(count_files(), SWEEP_KEEP);
}

static void test_dead_ledgers_stay_up_to_an_age(void **state)
{
    char command[160];
    (void)state;
    make_dead_ledger(false);
    snprintf(command, sizeof command, "touch -d '2 days ago' %s/*", folder);
    assert_int_equal(system(command), 0);
    sweep_dead_ledgers(folder);
    assert_int_equal(count_files(), 0);
}

static void test_one_killed_after_days_is_kept_from_when_it_is_found(void **state)
{
    char command[160];
    (void)state;
    make_dead_ledger(true);
    snprintf(command, sizeof command, "touch -d '2 days ago' %s/*", folder);
    assert_int_equal(system(command), 0);
    sweep_dead_ledgers(folder);
    assert_int_equal(count_files(), 1);
    sweep_dead_ledgers(folder);
    assert_int_equal(count_files(), 1);
}

static void test_live_ledgers_and_other_files_are_left_alone(void **state)
{
    char command[200];
    int pipe_ends[2], status;
    char byte;
    (void)state;
    snprintf(command, sizeof command,
             "echo hello >%s/gpulimit.mine; ln -s gpulimit.mine %s/gpulimit.l", folder, folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        bool is_open = open_region();
        (void)!write(pipe_ends[1], is_open ? "y" : "n", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    for (unsigned i = 0; i < SWEEP_KEEP + 1; i++)
        make_dead_ledger(false);
    sweep_dead_ledgers(folder);
    assert_int_equal(count_files(), SWEEP_KEEP + 3);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

#define IN_FOLDER(_test) cmocka_unit_test_setup_teardown(_test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_the_file_says_whose_it_is),
        IN_FOLDER(test_entries_lie_where_the_extents_say),
        IN_FOLDER(test_without_a_folder_all_goes_on_without_a_file),
        IN_FOLDER(test_a_full_folder_costs_entries_and_no_sigbus),
        IN_FOLDER(test_a_section_that_was_full_once_stays_full),
        IN_FOLDER(test_a_forked_child_leaves_the_file_alone),
        IN_FOLDER(test_the_descriptor_is_out_of_the_way_and_closed_on_exec),
        IN_FOLDER(test_dead_ledgers_stay_up_to_a_number),
        IN_FOLDER(test_dead_ledgers_stay_up_to_an_age),
        IN_FOLDER(test_one_killed_after_days_is_kept_from_when_it_is_found),
        IN_FOLDER(test_live_ledgers_and_other_files_are_left_alone),
    };
    return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
