/* SPDX-License-Identifier: MIT
 *
 * Do no harm: programs that have nothing to do with CUDA do not notice the library, whatever its
 * variables say. Each is run with it and without, and must print, say and answer the same.
 */
#include "preload.h"

#include "program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct program with, without;
static char folder[64] = "/tmp/test_guest.XXXXXX";
static char folder_variable[80];

static unsigned files_in_folder(void)
{
    unsigned files = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        files += entry->d_name[0] != '.';
    closedir(entries);
    return files;
}

/* Runs it both ways. */
static void run_both(const char *const words[])
{
    program_run(&without, PROGRAM_LIST(program_without_library()), words);
    program_run(&with,
                PROGRAM_LIST(program_under_library(), folder_variable, "GPU_LIMIT_VERBOSE=4"),
                words);
    assert_string_equal(with.out, without.out);
    assert_string_equal(with.err, without.err);
    assert_int_equal(with.status, without.status);
    assert_int_equal(files_in_folder(), 0);
}

static void test_a_shell_notices_nothing(void **state)
{
    (void)state;
    run_both(PROGRAM_LIST("/bin/sh", "-c", "true"));
    assert_int_equal(with.status, 0);
    assert_string_equal(with.out, "");
    assert_string_equal(with.err, "");
    run_both(PROGRAM_LIST("/bin/sh", "-c", "echo out; echo err >&2; exit 3"));
    assert_int_equal(with.status, 3);
    assert_string_equal(with.out, "out\n");
    assert_string_equal(with.err, "err\n");
}

static void test_a_shells_children_notice_nothing(void **state)
{
    (void)state;
    run_both(PROGRAM_LIST("/bin/sh", "-c", "(cat /proc/self/comm | tr a-z A-Z) & wait; kill $$"));
    assert_int_equal(with.status, 128 + 15);
    assert_string_equal(with.out, "CAT\n");
}

static void test_a_listing_is_the_same(void **state)
{
    (void)state;
    run_both(PROGRAM_LIST("ls", "-a", "/"));
    assert_int_equal(with.status, 0);
    run_both(PROGRAM_LIST("ls", "/no/such/folder"));
    assert_int_equal(with.status, 2);
}

/* guest.c prints descriptors, threads, handlers, the umask and what is mapped. */
static void test_nothing_in_the_process_is_changed(void **state)
{
    (void)state;
    run_both(PROGRAM_LIST(getenv("GUEST")));
    assert_int_equal(with.status, 0);
    assert_non_null(strstr(with.out, "mappings of libcuda: 0\nmappings of libnvidia: 0\n"));
    run_both(PROGRAM_LIST(getenv("GUEST"), "17"));
    assert_int_equal(with.status, 17);
}

static void test_wrong_variables_are_nothing_to_a_program_without_cuda(void **state)
{
    static const char *const variables[] = {"GPU_LIMIT_MB=abc", "GPU_LIMIT_VERBOSE=9",
                                            "GPU_LIMIT_LOG=nowhere", "GPU_LIMIT_NO_SUCH=1"};
    (void)state;
    for (unsigned i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        program_run(&with, PROGRAM_LIST(program_under_library(), folder_variable, variables[i]),
                    PROGRAM_LIST("/bin/sh", "-c", "exit 4"));
        assert_int_equal(with.status, 4);
        assert_string_equal(with.out, "");
        assert_string_equal(with.err, "");
        assert_int_equal(files_in_folder(), 0);
    }
}

static int open_folder(void **state)
{
    (void)state;
    snprintf(folder_variable, sizeof folder_variable, "GPU_LIMIT_DIR=%s", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shell_notices_nothing),
        cmocka_unit_test(test_a_shells_children_notice_nothing),
        cmocka_unit_test(test_a_listing_is_the_same),
        cmocka_unit_test(test_nothing_in_the_process_is_changed),
        cmocka_unit_test(test_wrong_variables_are_nothing_to_a_program_without_cuda),
    };
    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
