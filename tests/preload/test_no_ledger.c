/* SPDX-License-Identifier: MIT
 *
 * The limit holds where the ledger cannot be had, cannot grow, or is taken away, and nothing of the
 * program's own suffers from that: what enforces is in private memory.
 */
#include "preload.h"

#include "program.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANNOT = 77, MANY = 3000, LOWEST_NUMBER = 3, NUMBERS = 400, SMALL_FILE = 8192 };

/* ---- in the started program ---- */

/* The limit of 1024 MiB holds, and lets be what is within. */
static int limit_holds(void)
{
    CUdeviceptr address;
    expect(cuMemAlloc_v2(&address, MIB(1026)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&address, MIB(1024)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    return 0;
}

/* As many live allocations as make a ledger grow. */
static int take_many(void)
{
    static CUdeviceptr addresses[MANY];
    for (unsigned i = 0; i < MANY; i++)
        expect(cuMemAlloc_v2(&addresses[i], 4096) == CUDA_SUCCESS);
    CUdeviceptr more;
    expect(cuMemAlloc_v2(&more, MIB(1024)) == CUDA_ERROR_OUT_OF_MEMORY);
    for (unsigned i = 0; i < MANY; i++)
        expect(cuMemFree_v2(addresses[i]) == CUDA_SUCCESS);
    return 0;
}

static int play_limit(void)
{
    expect(role_begin() == 0);
    expect(limit_holds() == 0);
    return take_many();
}

static int play_close_all(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    expect(close_range(LOWEST_NUMBER, ~0u, 0) == 0);
    expect(cuMemAlloc_v2(&address, MIB(926)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&address, MIB(924)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    return take_many();
}

/* The numbers of all descriptors that were closed become those of a file of the program's. */
static int play_reuse_all(void)
{
    expect(role_begin() == 0);
    expect(close_range(LOWEST_NUMBER, ~0u, 0) == 0);
    int file = open(getenv("VICTIM"), O_RDWR | O_CLOEXEC);
    expect(file == LOWEST_NUMBER);
    for (int number = file + 1; number < NUMBERS; number++)
        expect(dup2(file, number) == number);
    expect(limit_holds() == 0);
    return take_many();
}

/* A file system that is full from the start, or once the ledger has begun. */
static int play_full(void)
{
    const char *folder = getenv("GPU_LIMIT_DIR");
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, getenv("MOUNT_OPTIONS")) != 0)
        return CANNOT;
    return play_limit();
}

static int restrict_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    return setrlimit(RLIMIT_FSIZE, &limit);
}

static int play_small_files(void)
{
    expect(role_begin() == 0);
    expect(restrict_files(SMALL_FILE) == 0);
    expect(limit_holds() == 0);
    return take_many();
}

static int play_no_files(void)
{
    expect(restrict_files(SMALL_FILE) == 0);
    return play_limit();
}

static const struct role roles[] = {{"limit", play_limit},
                                    {"close all", play_close_all},
                                    {"reuse all", play_reuse_all},
                                    {"full", play_full},
                                    {"small files", play_small_files},
                                    {"no files", play_no_files},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

static void assert_quiet(void)
{
    program_assert_ok(&program);
    assert_string_equal(program.out, "");
    assert_string_equal(program.err, "");
}

static void test_limit_holds_when_all_descriptors_are_closed(void **state)
{
    (void)state;
    PLAY("close all", "GPU_LIMIT_LOG=none");
    assert_quiet();
}

/* The library's own descriptor is gone, and its number is somebody else's. */
static void test_files_of_the_program_are_left_alone(void **state)
{
    char path[] = "/tmp/test_no_ledger.XXXXXX", variable[64], content[64] = "";
    struct stat before, after;
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, "precious", 8), 8);
    assert_int_equal(fstat(file, &before), 0);
    snprintf(variable, sizeof variable, "VICTIM=%s", path);
    PLAY("reuse all", "GPU_LIMIT_LOG=none", variable);
    unlink(path);
    assert_int_equal(fstat(file, &after), 0);
    assert_int_equal(pread(file, content, sizeof content - 1, 0), 8);
    close(file);
    assert_quiet();
    assert_string_equal(content, "precious");
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

static void test_limit_holds_without_a_ledger(void **state)
{
    static const char *const folders[] = {"GPU_LIMIT_DIR=/no/such/folder", "GPU_LIMIT_DIR=/proc",
                                          "GPU_LIMIT_DIR=/dev/null"};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        PLAY("limit", folders[i]);
        assert_quiet();
    }
}

static void test_limit_holds_on_a_full_file_system(void **state)
{
    static const char *const sizes[] = {"MOUNT_OPTIONS=size=4k", "MOUNT_OPTIONS=size=64k",
                                        "MOUNT_OPTIONS=size=128k", "MOUNT_OPTIONS=nr_inodes=1"};
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        PLAY("full", sizes[i]);
        if (program.status == CANNOT)
            print_message("# cannot mount here\n");
        else
            assert_quiet();
    }
}

static void test_limit_holds_where_files_may_not_grow(void **state)
{
    (void)state;
    PLAY("small files", NULL);
    assert_quiet();
    PLAY("no files", NULL);
    assert_quiet();
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_holds_without_a_ledger),
        cmocka_unit_test(test_limit_holds_when_all_descriptors_are_closed),
        cmocka_unit_test(test_files_of_the_program_are_left_alone),
        cmocka_unit_test(test_limit_holds_on_a_full_file_system),
        cmocka_unit_test(test_limit_holds_where_files_may_not_grow),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
