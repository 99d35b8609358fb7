/* SPDX-License-Identifier: MIT
 *
 * Do no harm, in programs that do use CUDA: what belongs to the program (errno, signals, umask,
 * threads, descriptors, output) is as it was, up to its end.
 */
#include "preload.h"

#include "program.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in the started program ---- */

/* A refusal and a success of each family. */
static int use_memory(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    expect(cuMemAlloc_v2(&address, MIB(1026)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&address, MIB(1024)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    expect(cuMemAllocAsync(&address, MIB(1026), NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAllocAsync(&address, MIB(100), NULL) == CUDA_SUCCESS);
    expect(cuMemFreeAsync(address, NULL) == CUDA_SUCCESS);
    expect(cuMemCreate(&handle, MIB(1026), &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemCreate(&handle, MIB(100), &prop, 0) == CUDA_SUCCESS);
    expect(cuMemRelease(handle) == CUDA_SUCCESS);
    return 0;
}

#define expect_untouched(_call, _result)                                                           \
    do {                                                                                           \
        errno = EXDEV;                                                                             \
        expect((_call) == (_result));                                                              \
        expect(errno == EXDEV);                                                                    \
    } while (0)

static int play_errno(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t free_bytes, total;
    void *function;
    expect(role_begin() == 0);
    expect_untouched(cuMemAlloc_v2(&address, MIB(2)), CUDA_SUCCESS);
    expect_untouched(cuMemFree_v2(address), CUDA_SUCCESS);
    expect_untouched(cuMemAlloc_v2(&address, MIB(2000)), CUDA_ERROR_OUT_OF_MEMORY);
    expect_untouched(cuMemAlloc_v2(&address, MIB(3000)), CUDA_ERROR_OUT_OF_MEMORY);
    expect_untouched(cuMemAllocAsync(&address, MIB(2000), NULL), CUDA_ERROR_OUT_OF_MEMORY);
    expect_untouched(cuMemAllocAsync(&address, MIB(2), NULL), CUDA_SUCCESS);
    expect_untouched(cuMemFreeAsync(address, NULL), CUDA_SUCCESS);
    expect_untouched(cuMemCreate(&handle, MIB(2000), &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    expect_untouched(cuMemCreate(&handle, MIB(2), &prop, 0), CUDA_SUCCESS);
    expect_untouched(cuMemRelease(handle), CUDA_SUCCESS);
    expect_untouched(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    expect_untouched(cuGetProcAddress("cuMemAlloc", &function, 3020, 0), CUDA_SUCCESS);
    expect_untouched(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL, 1);
    return 0;
}

/* The first call of all opens a ledger, or writes the line about a wrong variable. This one is
 * refused by the driver, which does nothing then. */
static int play_errno_first(void)
{
    expect_untouched(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    return 0;
}

struct surroundings {
    void (*handlers[NSIG])(int);
    sigset_t blocked;
    mode_t mask;
    unsigned threads;
    struct rlimit files;
    char folder[512];
};

static void look_around(struct surroundings *seen)
{
    memset(seen, 0, sizeof *seen);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0) /* two are the C library's own */
            seen->handlers[number] = action.sa_handler;
    }
    sigprocmask(SIG_SETMASK, NULL, &seen->blocked);
    seen->mask = umask(0);
    umask(seen->mask);
    DIR *tasks = opendir("/proc/self/task");
    while (readdir(tasks))
        seen->threads++;
    closedir(tasks);
    getrlimit(RLIMIT_NOFILE, &seen->files);
    if (!getcwd(seen->folder, sizeof seen->folder))
        seen->folder[0] = '\0';
}

static int play_surroundings(void)
{
    static struct surroundings before, after;
    umask(0123);
    signal(SIGUSR1, SIG_IGN);
    look_around(&before);
    expect(role_begin() == 0);
    expect(use_memory() == 0);
    look_around(&after);
    expect(memcmp(&before, &after, sizeof before) == 0);
    return 0;
}

/* What a program started from a CUDA program finds: guest.c prints its descriptors. */
static int play_exec(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(2)) == CUDA_SUCCESS);
    execl(getenv("GUEST"), "guest", (char *)NULL);
    return 1;
}

static int play_refusals(void)
{
    CUdeviceptr address;
    expect(role_begin() == 0);
    for (unsigned i = 0; i < 200; i++)
        expect(cuMemAlloc_v2(&address, MIB(1025 + i)) == CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}

static CUdeviceptr left_for_exit, left_for_end;

static void free_at_exit(void)
{
    if (cuMemFree_v2(left_for_exit) != CUDA_SUCCESS)
        fprintf(stderr, "cuMemFree failed in an exit handler\n");
}

__attribute__((destructor)) static void free_at_end(void)
{
    if (left_for_end && cuMemFree_v2(left_for_end) != CUDA_SUCCESS)
        fprintf(stderr, "cuMemFree failed in a destructor\n");
}

static int play_exit(void)
{
    CUdeviceptr address;
    atexit(
        free_at_exit); /* before the library does anything: runs after all that it could set up */
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&left_for_exit, MIB(100)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&left_for_end, MIB(100)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    expect(cuMemAllocAsync(&address, MIB(100), NULL) == CUDA_SUCCESS);
    return 0;
}

static const struct role roles[] = {{"errno", play_errno},
                                    {"errno first", play_errno_first},
                                    {"surroundings", play_surroundings},
                                    {"exec", play_exec},
                                    {"refusals", play_refusals},
                                    {"exit", play_exit},
                                    {0}};

/* ---- in the test ---- */

static struct program program, other;

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

static void assert_quiet(void)
{
    program_assert_ok(&program);
    assert_string_equal(program.out, "");
    assert_string_equal(program.err, "");
}

static void test_errno_is_left_alone(void **state)
{
    (void)state;
    PLAY("errno", "GPU_LIMIT_VERBOSE=4", "GPU_LIMIT_LOG=none");
    assert_quiet();
    PLAY("errno", "GPU_LIMIT_VERBOSE=4", "GPU_LIMIT_LOG=/no/such/folder/log");
    assert_quiet();
    PLAY("errno", "GPU_LIMIT_DIR=/no/such/folder");
    assert_quiet();
    PLAY("errno first", "GPU_LIMIT_MB=wrong", "GPU_LIMIT_LOG=none");
    assert_quiet();
    PLAY("errno first", "GPU_LIMIT_DIR=/no/such/folder");
    assert_quiet();
}

static void test_signals_umask_threads_and_folder_are_left_alone(void **state)
{
    (void)state;
    PLAY("surroundings", "GPU_LIMIT_LOG=none");
    assert_quiet();
}

static void test_started_programs_inherit_no_descriptor(void **state)
{
    (void)state;
    program_run(&other, PROGRAM_LIST(program_without_library()), PROGRAM_LIST(getenv("GUEST")));
    PLAY("exec", "GPU_LIMIT_LOG=none");
    assert_string_equal(program.out, other.out);
    assert_string_equal(program.err, "");
}

static void test_many_refusals_are_explained_once(void **state)
{
    (void)state;
    PLAY("refusals", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.out, "");
    assert_int_equal(strncmp(program.err, "gpulimit: refused ", 18), 0);
    assert_null(strstr(program.err + 18, "gpulimit: refused "));
    assert_in_range(program_lines(program.err), 3, 7);
    assert_non_null(strstr(program.err, "of 1024 MiB, 200 requests refused.\n")); /* at the end */
    for (const char *line = program.err; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(strncmp(line, "gpulimit: ", 10), 0);
}

static void test_ending_with_live_memory_is_quiet(void **state)
{
    (void)state;
    PLAY("exit", "GPU_LIMIT_VERBOSE=1");
    assert_quiet();
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errno_is_left_alone),
        cmocka_unit_test(test_signals_umask_threads_and_folder_are_left_alone),
        cmocka_unit_test(test_started_programs_inherit_no_descriptor),
        cmocka_unit_test(test_many_refusals_are_explained_once),
        cmocka_unit_test(test_ending_with_live_memory_is_quiet),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
