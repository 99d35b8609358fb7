/* SPDX-License-Identifier: MIT
 *
 * Other libraries in the same program, preloaded before or behind ours: their RTLD_NEXT is theirs,
 * they may look functions up before any constructor of ours has run and free memory when we have
 * ended, and a look-up calls none of their allocators.
 */
#include "preload.h"

#include "../cannot.h"
#include "bare.h"
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- in the started program ---- */

static int play_allocator(void)
{
    void *(*address)(void) = NULL;
    *(void **)&address = dlsym(RTLD_DEFAULT, "next_malloc_address");
    expect(address);
    expect(bare_lies_in(address(), "libc.so.6"));
    void *memory = malloc(100);
    expect(memory);
    free(memory);
    CUdeviceptr held;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&held, MIB(2048)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&held, MIB(512)) == CUDA_SUCCESS);
    expect(cuMemFree_v2(held) == CUDA_SUCCESS);
    return 0;
}

/* The first look-up, in which the driver is found, counts as well. */
static int play_counter(void)
{
    unsigned long (*calls)(void) = NULL;
    void *driver = bare_driver();
    *(void **)&calls = dlsym(RTLD_DEFAULT, "next_malloc_calls");
    expect(calls && driver);
    unsigned long before = calls();
    void *volatile memory = malloc(100);
    free(memory);
    if (calls() == before)
        return 77; /* a sanitizer's own allocator stands before it */
    before = calls();
    for (unsigned i = 0; i < 100; i++) {
        expect(dlsym(driver, "cuMemAlloc_v2"));
        expect(dlsym(RTLD_DEFAULT, "cuMemCreate"));
        expect(dlsym(RTLD_NEXT, "cuMemFree_v2"));
        expect(dlsym(driver, "cuMemcpyHtoD_v2"));
        expect(dlsym(RTLD_DEFAULT, "strlen"));
    }
    expect(calls() == before);
    return 0;
}

static int play_early(void)
{
    void *(*address)(unsigned) = NULL;
    *(void **)&address = dlsym(RTLD_DEFAULT, "early_address");
    expect(address);
    expect(bare_lies_in(address(0), "libgpulimit.so"));
    expect(address(1) == (void *)cuMemAlloc_v2);
    expect(bare_lies_in(address(1), "libgpulimit.so"));
    expect(bare_lies_in(address(2), "libcuda.so.1"));
    return 0;
}

static int play_late(void)
{
    void (*free_at_end)(unsigned long long) = NULL;
    CUdeviceptr address;
    *(void **)&free_at_end = dlsym(RTLD_DEFAULT, "early_free_at_end");
    expect(free_at_end);
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    free_at_end(address);
    return 0;
}

static const struct role roles[] = {{"allocator", play_allocator},
                                    {"counter", play_counter},
                                    {"early", play_early},
                                    {"late", play_late},
                                    {0}};

/* ---- in the test ---- */

/* Runs a role with another library of the build preloaded before or behind ours. */
static void play_beside(struct program *program, const char *role, const char *other,
                        bool is_before)
{
    const char *bare = getenv("PRELOAD_BARE"), *all = getenv("PRELOAD_LIBRARY");
    const char *ours = all + strlen(bare), *folder = getenv("PRELOAD_OTHERS");
    char preload[4096];
    if (is_before)
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s/%s:%s", bare, folder, other, ours);
    else
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s:%s/%s", bare, ours, folder, other);
    program_run(program, PROGRAM_LIST(preload), PROGRAM_LIST(PROGRAM_ITSELF, role));
}

static struct program program;

static void test_allocator_before_ours_finds_the_next_malloc(void **state)
{
    (void)state;
    play_beside(&program, "allocator", "libnext-malloc.so", true);
    program_assert_ok(&program);
}

static void test_allocator_behind_ours_finds_the_next_malloc(void **state)
{
    (void)state;
    play_beside(&program, "allocator", "libnext-malloc.so", false);
    program_assert_ok(&program);
}

static void test_looking_up_allocates_nothing(void **state)
{
    (void)state;
    play_beside(&program, "counter", "libnext-malloc.so", true);
    if (program.status == 77)
        CANNOT_BE_SEEN("a sanitizer's own allocator stands before the library");
    else
        program_assert_ok(&program);
}

static void test_constructors_before_ours_get_the_hooks(void **state)
{
    (void)state;
    play_beside(&program, "early", "libearly.so", false);
    program_assert_ok(&program);
    play_beside(&program, "early", "libearly.so", true);
    program_assert_ok(&program);
}

static void test_destructors_after_ours_may_free(void **state)
{
    (void)state;
    for (int is_before = 0; is_before < 2; is_before++) {
        play_beside(&program, "late", "libearly.so", is_before);
        program_assert_ok(&program);
        assert_string_equal(program.err, "");
    }
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocator_before_ours_finds_the_next_malloc),
        cmocka_unit_test(test_allocator_behind_ours_finds_the_next_malloc),
        cmocka_unit_test(test_looking_up_allocates_nothing),
        cmocka_unit_test(test_constructors_before_ours_get_the_hooks),
        cmocka_unit_test(test_destructors_after_ours_may_free),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
