/* SPDX-License-Identifier: MIT
 *
 * Children of programs under the library: one forked before cuInit is a program of its own, one
 * forked later gets the driver's errors and leaves its parent's books and ledger alone, also when
 * it ends. Forks among threads are in test_fork_threads.c.
 */
#include "preload.h"

#include "bare.h"
#include "program.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the started program ---- */

/* 600 MiB are within the limit, and twice that is not. */
static int hold_600(void)
{
    CUdeviceptr first, second;
    expect(role_begin() == 0);
    expect(preload_free() == MIB(1024));
    expect(cuMemAlloc_v2(&first, MIB(600)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&second, MIB(600)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(preload_free() == MIB(424));
    expect(preload_ledger() && preload_ledger()->pid == getpid());
    expect(preload_device()->charged_bytes == MIB(600));
    return 0;
}

static int play_before_init(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(hold_600());
    expect(hold_600() == 0);
    expect(role_wait(child) == 0);
    expect(preload_device()->charged_bytes == MIB(600));
    expect(preload_ledger()->ended_time_ns == 0);
    child = fork(); /* and once more, with a parent that uses CUDA and a child that does not */
    if (child == 0)
        exit(0);
    expect(role_wait(child) == 0);
    expect(preload_ledger()->ended_time_ns == 0);
    return 0;
}

/* The ledger as a file. */
static char *find_ledger(void)
{
    static char path[512];
    const char *folder = getenv("GPU_LIMIT_DIR");
    char prefix[64];
    DIR *files = opendir(folder);
    snprintf(prefix, sizeof prefix, GPULIMIT_REGION_PREFIX "%d.", (int)getpid());
    path[0] = '\0';
    for (struct dirent *file = readdir(files); file; file = readdir(files)) {
        if (strncmp(file->d_name, prefix, strlen(prefix)) == 0)
            snprintf(path, sizeof path, "%s/%.200s", folder, file->d_name);
    }
    closedir(files);
    return path;
}

/* A ledger as it was. Not read from its file: closing that would drop the library's lock. */
struct picture {
    struct gpulimit_header header;
    struct gpulimit_device device;
    struct stat status;
};

static void take_picture(struct picture *picture)
{
    memset(picture, 0, sizeof *picture);
    memcpy(&picture->header, preload_ledger(), sizeof picture->header);
    memcpy(&picture->device, preload_device(), sizeof picture->device);
    stat(find_ledger(), &picture->status);
    picture->status.st_atim = (struct timespec){0};
}

static struct picture before, after;

/* What a parent that holds 100 MiB sees once a child is gone: nothing. */
static int nothing_has_changed(void)
{
    CUdeviceptr address;
    take_picture(&after);
    expect(memcmp(&before, &after, sizeof before) == 0);
    expect(after.header.ended_time_ns == 0);
    expect((after.status.st_mode & 0777) == 0600);
    expect(cuMemAlloc_v2(&address, MIB(926)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&address, MIB(924)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    take_picture(&before); /* the counters have gone on */
    return 0;
}

/* Asked from another process, whose own such lock it is not. */
static int lock_is_held(pid_t owner)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    char path[512];
    snprintf(path, sizeof path, "%s", find_ledger());
    pid_t child = fork();
    if (child == 0) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        _exit(file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK &&
                      lock.l_pid == owner
                  ? 0
                  : 1);
    }
    expect(role_wait(child) == 0);
    return 0;
}

/* Calls of all sorts, each answered as by the driver. */
static int call_in_child(CUdeviceptr parents)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    CUcontext context;
    size_t free_bytes, total;
    CUresult (*driver_alloc)(CUdeviceptr *, size_t) = NULL;
    *(void **)&driver_alloc = bare_dlsym(bare_driver(), "cuMemAlloc_v2");
    CUresult answer = driver_alloc(&address, 1);
    expect(answer == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuMemAlloc_v2(&address, 1) == answer);
    expect(cuMemAlloc_v2(&address, MIB(2000)) == answer);
    expect(cuMemFree_v2(parents) == answer);
    expect(cuMemAllocAsync(&address, 1, NULL) == answer);
    expect(cuMemFreeAsync(parents, NULL) == answer);
    expect(cuMemCreate(&handle, MIB(2), &prop, 0) == answer);
    expect(cuMemGetInfo_v2(&free_bytes, &total) == answer);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == answer);
    expect(cuDevicePrimaryCtxReset_v2(0) == answer);
    expect(cuInit(0) == answer);
    return 0;
}

static int play_after_init(void)
{
    CUdeviceptr parents;
    expect(bare_find_loader(NULL) == 0);
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&parents, MIB(100)) == CUDA_SUCCESS);
    take_picture(&before);
    for (unsigned i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            int failed = i & 1 ? 0 : call_in_child(parents);
            if (i & 2)
                exit(failed); /* runs destructors, the library's as well */
            _exit(failed);
        }
        expect(role_wait(child) == 0);
        expect(nothing_has_changed() == 0);
    }
    return lock_is_held(getpid());
}

static int play_vfork(void)
{
    CUdeviceptr parents;
    char *words[] = {getenv("GUEST"), NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&parents, MIB(100)) == CUDA_SUCCESS);
    take_picture(&before);
    child = vfork();
    if (child == 0)
        _exit(7);
    expect(role_wait(child) == 7);
    expect(nothing_has_changed() == 0);
    expect(posix_spawn_file_actions_init(&actions) == 0);
    expect(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) == 0);
    expect(posix_spawn(&child, words[0], &actions, NULL, words, environ) == 0);
    expect(role_wait(child) == 0);
    expect(nothing_has_changed() == 0);
    posix_spawn_file_actions_destroy(&actions);
    return lock_is_held(getpid());
}

/* Prints where its ledger is. */
static int play_alone(void)
{
    expect(role_begin() == 0);
    printf("%s", find_ledger());
    return 0;
}

static const struct role roles[] = {{"before init", play_before_init},
                                    {"after init", play_after_init},
                                    {"vfork", play_vfork},
                                    {"alone", play_alone},
                                    {0}};

/* ---- in the test ---- */

static struct program program;
static char folder[] = "/tmp/test_fork.XXXXXX";

static unsigned remove_ledgers(void)
{
    unsigned ledgers = 0;
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (struct dirent *file = readdir(files); file; file = readdir(files))
        ledgers += unlinkat(dirfd(files), file->d_name, 0) == 0;
    closedir(files);
    return ledgers;
}

static void test_fork_before_init_makes_two_programs(void **state)
{
    (void)state;
    program_play(&program, "before init", PROGRAM_LIST(NULL));
    program_assert_ok(&program);
    assert_int_equal(remove_ledgers(), 2);
}

static void test_fork_after_init_leaves_the_parent_alone(void **state)
{
    (void)state;
    program_play(&program, "after init", PROGRAM_LIST(NULL));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    remove_ledgers();
}

static void test_vfork_and_spawn_leave_the_parent_alone(void **state)
{
    (void)state;
    program_play(&program, "vfork", PROGRAM_LIST(NULL));
    program_assert_ok(&program);
    assert_int_equal(remove_ledgers(), 1);
}

/* So that the ends which children do not write can be told from none at all. */
static void test_a_programs_own_exit_ends_its_ledger(void **state)
{
    struct gpulimit_header header;
    struct stat status;
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST(NULL));
    program_assert_ok(&program);
    int file = open(program.out, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(file, &header, sizeof header), sizeof header);
    assert_int_equal(fstat(file, &status), 0);
    close(file);
    assert_int_not_equal(header.ended_time_ns, 0);
    assert_int_equal(status.st_mode & 0777, GPULIMIT_REGION_DEAD_MODE);
    assert_int_equal(remove_ledgers(), 1);
}

static int open_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && setenv("GPU_LIMIT_DIR", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_before_init_makes_two_programs),
        cmocka_unit_test(test_fork_after_init_leaves_the_parent_alone),
        cmocka_unit_test(test_vfork_and_spawn_leave_the_parent_alone),
        cmocka_unit_test(test_a_programs_own_exit_ends_its_ledger),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
