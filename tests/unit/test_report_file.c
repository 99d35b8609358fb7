/* SPDX-License-Identifier: MIT
 *
 * shim/report_file.c: which folders reports go to, which not, and what is left of one that did not
 * come to its end.
 */
#include "unit.h"

#include "../cannot.h"

#include "clock.h"
#include "report_file.h"
#include "report_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char base[] = "/tmp/test_report_file.XXXXXX";
static char folder[64], other[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(base + strlen(base) - 6, "XXXXXX");
    if (!mkdtemp(base))
        return 1;
    snprintf(folder, sizeof folder, "%s/reports", base);
    snprintf(other, sizeof other, "%s/other", base);
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", base);
    return system(command); /* NOLINT: a folder of our own */
}

static unsigned mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static unsigned files_in(const char *path)
{
    unsigned count = 0;
    DIR *list = opendir(path);
    assert_non_null(list);
    for (struct dirent *file; (file = readdir(list)) != NULL;)
        count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
    closedir(list);
    return count;
}

/* Writes a report of a few bytes. */
static bool report(const char *chosen, const char *runtime_dir, unsigned number, char *path)
{
    struct report_file file;
    if (!report_file_begin(&file, chosen, runtime_dir, number))
        return false;
    assert_int_equal(file.most_bytes, REPORT_FILE_MOST);
    assert_int_equal(write(file.file, "{}\n", 3), 3);
    if (path)
        strcpy(path, file.path);
    return report_file_end(&file, true);
}

static void test_a_report_is_whole_and_private(void **state)
{
    char path[REPORT_FILE_PATH], expected[128];
    (void)state;
    assert_true(report(folder, "", 1, path));
    snprintf(expected, sizeof expected, "%s/oom-%d-1.json", folder, (int)getpid());
    assert_string_equal(path, expected);
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(mode_of(path), 0600);
    assert_true(report(folder, "", 1, path)); /* in place of the other */
    assert_true(report(folder, "", 3, path));
    assert_int_equal(files_in(folder), 2);
}

static void test_a_report_that_is_not_whole_leaves_the_older_one(void **state)
{
    struct report_file file;
    char path[REPORT_FILE_PATH];
    struct stat status;
    (void)state;
    assert_true(report(folder, "", 1, path));
    assert_true(report_file_begin(&file, folder, "", 1));
    assert_int_equal(files_in(folder), 2);
    assert_false(report_file_end(&file, false));
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 3);
}

static void test_reports_of_an_older_process_can_be_removed(void **state)
{
    struct report_file file;
    (void)state;
    uint64_t before_ns = clock_ns(CLOCK_REALTIME_COARSE);
    assert_true(report(folder, "", 2, NULL));
    assert_true(report_file_begin(&file, folder, "", 1));
    report_file_remove(&file, 2, before_ns); /* another thread has written it meanwhile */
    assert_int_equal(files_in(folder), 2);
    report_file_remove(&file, 2, before_ns + UINT64_C(60000000000));
    report_file_remove(&file, 3, before_ns + UINT64_C(60000000000));
    assert_true(report_file_end(&file, true));
    assert_int_equal(files_in(folder), 1);
}

static void test_a_folder_that_others_may_write_to_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0770), 0);
    assert_false(report(folder, "", 1, NULL));
    assert_int_equal(chmod(folder, 0707), 0);
    assert_false(report(folder, "", 1, NULL));
    assert_int_equal(files_in(folder), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(report(folder, "", 1, NULL));
}

static void test_a_link_is_refused_with_a_slash_behind_it_or_without(void **state)
{
    char slash[128];
    (void)state;
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(symlink(other, folder), 0);
    snprintf(slash, sizeof slash, "%s//", folder);
    assert_false(report(folder, "", 1, NULL));
    assert_false(report(slash, "", 1, NULL));
    assert_int_equal(files_in(other), 0);
    snprintf(slash, sizeof slash, "%s//", other);
    assert_true(report(slash, "", 1, NULL));
}

static void test_a_file_is_no_folder(void **state)
{
    (void)state;
    close(open(folder, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_false(report(folder, "", 1, NULL));
    assert_false(report("/nonexistent/folder", "", 1, NULL));
}

/* Only root can have folders of others. */
static void test_a_folder_of_somebody_else_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        CANNOT_BE_SEEN("only root can give a folder away");
        return;
    }
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, 65534, 65534), 0);
    assert_false(report(folder, "", 1, NULL));
    assert_int_equal(files_in(folder), 0);
}

static void test_no_choice_means_the_runtime_folder_and_else_tmp(void **state)
{
    char path[REPORT_FILE_PATH], expected[64];
    (void)state;
    assert_true(report("", base, 1, path));
    snprintf(expected, sizeof expected, "%s/gpulimit", base);
    assert_int_equal(strncmp(path, expected, strlen(expected)), 0);
    assert_int_equal(mode_of(expected), 0700);
    snprintf(expected, sizeof expected, "/tmp/gpulimit-%u/", (unsigned)geteuid());
    bool is_new = access(expected, F_OK) != 0;
    assert_true(report("", "/nonexistent", 1, path)); /* as after sudo */
    assert_int_equal(strncmp(path, expected, strlen(expected)), 0);
    assert_int_equal(unlink(path), 0);
    if (is_new)
        assert_int_equal(rmdir(expected), 0);
}

/* Makes a file that was written so many seconds ago. */
static void make_old(const char *name, long seconds)
{
    char path[256];
    struct timespec times[2];
    snprintf(path, sizeof path, "%s/gpulimit/%s", base, name);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    assert_int_equal(futimens(file, times), 0);
    close(file);
}

static bool is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/gpulimit/%s", base, name);
    return access(path, F_OK) == 0;
}

static void test_the_oldest_reports_make_room_in_the_folder_that_nobody_chose(void **state)
{
    char name[64];
    (void)state;
    snprintf(folder, sizeof folder, "%s/gpulimit", base);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < REPORT_SWEEP_KEEP; i++) {
        snprintf(name, sizeof name, "oom-%d-1.json", 1000000 + i * 37 % REPORT_SWEEP_KEEP);
        make_old(name, 1000 + i * 37 % REPORT_SWEEP_KEEP);
    }
    make_old("notes", 100000);
    assert_true(report("", base, 1, NULL));
    assert_int_equal(files_in(folder), REPORT_SWEEP_KEEP + 2);
    make_old(".oom-2000000-1.json.12", 50000); /* of one that was killed */
    assert_true(report(folder, "", 1, NULL));
    assert_true(report("", base, 2, NULL));
    assert_int_equal(files_in(folder), REPORT_SWEEP_KEEP + 4);
    assert_true(report("", base, 1, NULL));
    assert_int_equal(files_in(folder), REPORT_SWEEP_KEEP + 1);
    assert_true(is_there("notes"));
    assert_false(is_there(".oom-2000000-1.json.12"));
    snprintf(name, sizeof name, "oom-%d-1.json", 1000000 + REPORT_SWEEP_KEEP - 1);
    assert_false(is_there(name));
    snprintf(name, sizeof name, "oom-%d-1.json", 1000000 + REPORT_SWEEP_KEEP - 3);
    assert_true(is_there(name));
}

static void test_the_current_folder_is_never_used(void **state)
{
    char before[512];
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(base), 0);
    assert_false(report("none", base, 1, NULL));
    assert_false(report("reports", base, 1, NULL));
    assert_int_equal(files_in(base), 0);
    assert_int_equal(chdir(before), 0);
}

static void test_the_umask_stays(void **state)
{
    (void)state;
    mode_t before = umask(0);
    assert_true(report(folder, "", 1, NULL));
    assert_int_equal(umask(before), 0);
    assert_int_equal(mode_of(folder), 0700);
}

/* Over the limit the kernel would end the process, as SIGXFSZ does. */
static void test_a_limit_on_files_is_kept(void **state)
{
    struct report_file file;
    struct rlimit before, small;
    char path[128];
    struct text text;
    (void)state;
    snprintf(path, sizeof path, "%s/log", base);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 200 << 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(report_file_begin(&file, folder, "", 1));
    assert_int_equal(file.most_bytes, 200 << 10);
    assert_false(report_file_end(&file, false));
    small.rlim_cur = 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_false(report_file_begin(&file, folder, "", 1));
    text_init(&text);
    text_add(&text, "eleven bytes");
    report_file_put(path, &text);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(files_in(folder), 0);
}

static void test_a_text_takes_the_place_of_what_is_in_a_file_that_is_there(void **state)
{
    char path[128], got[64] = "";
    struct text text;
    (void)state;
    snprintf(path, sizeof path, "%s/log", base);
    text_init(&text);
    text_add(&text, "a text\n");
    report_file_put(path, &text);
    assert_int_equal(access(path, F_OK), -1);
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(write(file, "something longer before\n", 24), 24);
    report_file_put(path, &text);
    assert_int_equal(pread(file, got, sizeof got, 0), 7);
    assert_string_equal(got, "a text\n");
    close(file);
}

static void test_a_pipe_is_no_place_for_a_text(void **state)
{
    char path[128];
    struct text text;
    (void)state;
    snprintf(path, sizeof path, "%s/log", base);
    assert_int_equal(mkfifo(path, 0600), 0);
    text_init(&text);
    text_add(&text, "a text\n");
    report_file_put(path, &text); /* nobody reads: it would wait */
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    report_file_put(path, &text);
    char byte;
    assert_int_equal(read(reader, &byte, 1), 0);
    close(reader);
}

#define CASE(_test) cmocka_unit_test_setup_teardown(_test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_report_is_whole_and_private),
        CASE(test_a_report_that_is_not_whole_leaves_the_older_one),
        CASE(test_reports_of_an_older_process_can_be_removed),
        CASE(test_a_folder_that_others_may_write_to_is_refused),
        CASE(test_a_link_is_refused_with_a_slash_behind_it_or_without),
        CASE(test_a_file_is_no_folder),
        CASE(test_a_folder_of_somebody_else_is_refused),
        CASE(test_no_choice_means_the_runtime_folder_and_else_tmp),
        CASE(test_the_oldest_reports_make_room_in_the_folder_that_nobody_chose),
        CASE(test_the_current_folder_is_never_used),
        CASE(test_the_umask_stays),
        CASE(test_a_limit_on_files_is_kept),
        CASE(test_a_text_takes_the_place_of_what_is_in_a_file_that_is_there),
        CASE(test_a_pipe_is_no_place_for_a_text),
    };
    return cmocka_run_group_tests_name("report_file", tests, NULL, NULL);
}
