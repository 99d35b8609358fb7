/* SPDX-License-Identifier: MIT
 *
 * Where the program asked for memory, as a reader of its ledger finds it.
 */
#include "preload.h"

#include "own_ledger.h"
#include "program.h"

#include <stdio.h>
#include <string.h>

/* ---- in the started program ---- */

static CUdeviceptr address;

/* What the ledger says of the one live allocation. */
static const struct gpulimit_site *site_of_it(struct gpulimit_ledger **ledger)
{
    *ledger = own_ledger();
    return *ledger && (*ledger)->entry_count == 1
               ? gpulimit_reader_site(*ledger, (*ledger)->entries[0].site)
               : NULL;
}

/* Two functions that a frame can lie in. */
__attribute__((noinline)) static CUresult inner(size_t bytes)
{
    CUresult result = cuMemAlloc_v2(&address, bytes);
    __asm__ volatile(""); /* no tail call */
    return result;
}

__attribute__((noinline)) static CUresult outer(size_t bytes)
{
    CUresult result = inner(bytes);
    __asm__ volatile("");
    return result;
}

/* The distance of a frame of this program from the beginning of a function in it. */
static int64_t behind(const struct gpulimit_ledger *ledger, const struct gpulimit_frame *frame,
                      CUresult (*function)(size_t))
{
    const struct gpulimit_module *module = &ledger->modules[frame->file - 1];
    /* This program is position-independent, and its ELF file begins at 0. */
    return (int64_t)(module->start + frame->place) - (int64_t)(uintptr_t)function;
}

static int play_stack(void)
{
    struct gpulimit_ledger *ledger = NULL;
    expect(role_begin() == 0 && outer(2 << 20) == CUDA_SUCCESS);
    const struct gpulimit_site *site = site_of_it(&ledger);
    expect(site && site->native_count >= 3 && site->python_count == 0);
    expect(strstr(ledger->modules[site->frames[0].file - 1].path, "test_preload_sites"));
    expect(behind(ledger, &site->frames[0], inner) > 0 &&
           behind(ledger, &site->frames[0], inner) < 256);
    expect(behind(ledger, &site->frames[1], outer) > 0 &&
           behind(ledger, &site->frames[1], outer) < 256);
    gpulimit_reader_close(ledger);
    return 0;
}

static int play_small(void)
{
    struct gpulimit_ledger *ledger = NULL;
    expect(role_begin() == 0 && outer(1000) == CUDA_SUCCESS);
    const struct gpulimit_site *site = site_of_it(&ledger);
    expect(site && site->native_count == 1);
    expect(behind(ledger, &site->frames[0], inner) > 0 &&
           behind(ledger, &site->frames[0], inner) < 256);
    gpulimit_reader_close(ledger);
    return 0;
}

static int play_off(void)
{
    struct gpulimit_ledger *ledger = NULL;
    expect(role_begin() == 0 && outer(2 << 20) == CUDA_SUCCESS);
    expect(!site_of_it(&ledger) && ledger && ledger->entries[0].site == 0);
    gpulimit_reader_close(ledger);
    return 0;
}

/* The same place is the same site, however often. */
static int play_again(void)
{
    struct gpulimit_ledger *ledger = NULL;
    uint32_t number = 0;
    expect(role_begin() == 0);
    for (volatile unsigned i = 0; i < 3; i++) { /* volatile: unrolled, it would be three places */
        expect(outer(2 << 20) == CUDA_SUCCESS && site_of_it(&ledger));
        expect(i == 0 || ledger->entries[0].site == number);
        number = ledger->entries[0].site;
        gpulimit_reader_close(ledger);
        expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    }
    return 0;
}

static const struct role roles[] = {
    {"stack", play_stack}, {"small", play_small}, {"off", play_off}, {"again", play_again}, {0}};

/* ---- in the test ---- */

static struct program program;

static void test_an_allocation_is_known_by_the_stack_that_asked_for_it(void **state)
{
    (void)state;
    program_play(&program, "stack", PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
}

static void test_a_small_one_is_known_by_its_caller(void **state)
{
    (void)state;
    program_play(&program, "small", PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
    program_play(&program, "stack", PROGRAM_LIST("GPU_LIMIT_STACKS=native,min:1M"));
    program_assert_ok(&program);
}

static void test_nothing_is_recorded_where_that_is_not_wanted(void **state)
{
    (void)state;
    program_play(&program, "off", PROGRAM_LIST("GPU_LIMIT_STACKS=off"));
    program_assert_ok(&program);
    program_play(&program, "off", PROGRAM_LIST("GPU_LIMIT_STACKS=python")); /* and there is none */
    program_assert_ok(&program);
}

static void test_the_same_place_is_the_same_site(void **state)
{
    (void)state;
    program_play(&program, "again", PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_allocation_is_known_by_the_stack_that_asked_for_it),
        cmocka_unit_test(test_a_small_one_is_known_by_its_caller),
        cmocka_unit_test(test_nothing_is_recorded_where_that_is_not_wanted),
        cmocka_unit_test(test_the_same_place_is_the_same_site),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests_name("sites", tests, NULL, NULL);
}
