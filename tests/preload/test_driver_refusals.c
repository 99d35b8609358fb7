/* SPDX-License-Identifier: MIT
 *
 * What the driver itself refuses, though the limit had let it pass: a card that others have filled.
 * It is counted apart from the limit's own refusals, whatever the call, and said once.
 */
#include "preload.h"

#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* ---- in the started program ---- */

static char untouched; /* its address: what an output was before */

static int filler_holds = -1; /* a pipe: the other process ends when it is closed */

/* Another process takes so much of the card, and its context's 64 MiB. To be called before this one
 * uses CUDA. Returns its pid, -1 on failure. */
static pid_t fill(unsigned mib)
{
    int ready[2], hold[2];
    char byte = 0;
    CUdeviceptr address;
    if (pipe(ready) != 0 || pipe(hold) != 0)
        return -1;
    pid_t other = fork();
    if (other == 0) {
        close(hold[1]);
        bool is_full = role_begin() == 0 && cuMemAlloc_v2(&address, MIB(mib)) == CUDA_SUCCESS;
        if (!is_full || write(ready[1], &byte, 1) != 1)
            _exit(1);
        (void)!read(hold[0], &byte, 1);
        _exit(0);
    }
    close(ready[1]);
    close(hold[0]);
    filler_holds = hold[1];
    return read(ready[0], &byte, 1) == 1 ? other : -1;
}

/* Of this process's own ledger. */
static const struct gpulimit_event *newest_event(void)
{
    const struct gpulimit_header *ledger = preload_ledger();
    const struct gpulimit_event *newest = NULL;
    for (uint32_t i = 0; i < ledger->extents_used; i++) {
        const struct gpulimit_extent *extent = &ledger->extents[i];
        const struct gpulimit_event *events = (const void *)((const char *)ledger + extent->offset);
        for (uint32_t j = 0; extent->section == GPULIMIT_SECTION_EVENTS && j < extent->count; j++) {
            if (events[j].number > (newest ? newest->number : 0))
                newest = &events[j];
        }
    }
    return newest;
}

static int refused_by_driver(uint64_t times)
{
    expect(preload_device()->driver_denials == times);
    expect(preload_device()->denials == 0);
    return 0;
}

static int end(pid_t other)
{
    close(filler_holds);
    expect(role_wait(other) == 0);
    return 0;
}

static int create_green(CUgreenCtx *green)
{
    CUdevResource all;
    CUdevResourceDesc desc;
    expect(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    expect(cuDevResourceGenerateDesc(&desc, &all, 1) == CUDA_SUCCESS);
    return (int)cuGreenCtxCreate(green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

/* 48 MiB of 512 are free: no context fits. */
static int play_contexts(void)
{
    CUcontext context = (CUcontext)&untouched;
    CUgreenCtx green;
    pid_t other = fill(400);
    expect(other > 0 && cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == OUT_OF_MEMORY);
    expect(refused_by_driver(1) == 0);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY && context == (CUcontext)&untouched);
    expect(refused_by_driver(2) == 0);
    expect(create_green(&green) == OUT_OF_MEMORY && refused_by_driver(3) == 0);
    expect(preload_device()->charged_bytes == 0);
    return end(other);
}

/* 48 MiB are left beside this process's context. */
static int play_others(void)
{
    CUmodule module;
    CUlibrary library;
    CUstream stream;
    CUdeviceptr address;
    size_t stack;
    pid_t other = fill(336);
    expect(other > 0 && role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module code=104857600") == OUT_OF_MEMORY);
    expect(refused_by_driver(1) == 0);
    expect(newest_event() && newest_event()->what == GPULIMIT_EVENT_DRIVER_REFUSED);
    expect(cuLibraryLoadData(&library, "simgpu-module code=104857600", NULL, NULL, 0, NULL, NULL,
                             0) == OUT_OF_MEMORY);
    expect(refused_by_driver(2) == 0);
    expect(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048) == OUT_OF_MEMORY);
    expect(refused_by_driver(3) == 0);
    simgpu_fail_next("cuStreamCreate", OUT_OF_MEMORY);
    expect(cuStreamCreate(&stream, 0) == OUT_OF_MEMORY && refused_by_driver(4) == 0);
    expect(cuMemAlloc_v2(&address, MIB(100)) == OUT_OF_MEMORY && refused_by_driver(5) == 0);
    return end(other);
}

/* A library that is loaded by its first use, with 48 MiB left. */
static int play_lazy(void)
{
    CUlibrary library;
    CUmodule module;
    CUdeviceptr address;
    size_t bytes;
    pid_t other = fill(336);
    expect(other > 0 && role_begin() == 0);
    expect(cuLibraryLoadData(&library, "simgpu-module globals=104857600", NULL, NULL, 0, NULL, NULL,
                             0) == CUDA_SUCCESS);
    expect(refused_by_driver(0) == 0);
    expect(cuLibraryGetModule(&module, library) == OUT_OF_MEMORY && refused_by_driver(1) == 0);
    expect(cuLibraryGetGlobal(&address, &bytes, library, "globals") == OUT_OF_MEMORY);
    return refused_by_driver(2) == 0 ? end(other) : 1;
}

static int play_other_errors(void)
{
    CUmodule module;
    CUstream stream;
    CUdeviceptr address;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&module, "no module") != CUDA_SUCCESS);
    simgpu_fail_next("cuStreamCreate", CUDA_ERROR_INVALID_VALUE);
    expect(cuStreamCreate(&stream, 0) == CUDA_ERROR_INVALID_VALUE);
    simgpu_fail_next("cuMemAlloc_v2", CUDA_ERROR_INVALID_CONTEXT);
    expect(cuMemAlloc_v2(&address, MIB(1)) == CUDA_ERROR_INVALID_CONTEXT);
    return refused_by_driver(0);
}

static const struct role roles[] = {{"contexts", play_contexts},
                                    {"others", play_others},
                                    {"lazy", play_lazy},
                                    {"other errors", play_other_errors},
                                    {0}};

/* ---- in the test ---- */

static struct program program;
static char folder[] = "/tmp/test_driver_refusals.XXXXXX";

/* Ledgers of its own: other tests' simulated GPUs have the same name, and their programs would be
 * among the neighbours. */
static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? setenv("GPU_LIMIT_DIR", folder, 1) : -1;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): a fixed command */
}

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

/* That the message names the one other process, and nobody else. */
static void assert_held(const char *here, const char *role, const char *there)
{
    char begin[64], end[64];
    snprintf(begin, sizeof begin, "gpulimit:   held by this process %s; process ", here);
    snprintf(end, sizeof end, " (exe %s) %s.\n", role, there);
    const char *held = strstr(program.err, begin);
    assert_non_null(held);
    held += strlen(begin);
    held += strspn(held, "0123456789");
    assert_int_equal(strncmp(held, end, strlen(end)), 0);
}

static void test_contexts_that_the_card_has_no_room_for_are_the_drivers_refusals(void **state)
{
    (void)state;
    PLAY("contexts", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit: the driver, not the limit, refused a context on "
                                        "GPU 0: the card has 48 MiB free of 512 MiB"));
    assert_non_null(strstr(program.err, "(0 bytes of GPU_LIMIT_MB=1024 in use)"));
    assert_held("0 bytes", "contexts", "464 MiB");
}

static void test_code_settings_and_streams_likewise(void **state)
{
    (void)state;
    PLAY("others", "GPU_LIMIT_VERBOSE=1", "CUDA_MODULE_LOADING=EAGER");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit: the driver, not the limit, refused code on "
                                        "GPU 0: the card has 48 MiB free of 512 MiB"));
    assert_held("64 MiB", "others", "400 MiB");
}

static void test_code_that_is_loaded_by_its_first_use_likewise(void **state)
{
    (void)state;
    PLAY("lazy", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit: the driver, not the limit, refused code on "
                                        "GPU 0: the card has 48 MiB free of 512 MiB"));
    assert_non_null(strstr(program.err, " (cuLibraryGetModule) in process "));
}

static void test_they_count_without_a_limit_and_without_overhead_too(void **state)
{
    (void)state;
    PLAY("others", "GPU_LIMIT_VERBOSE=1", "CUDA_MODULE_LOADING=EAGER", "GPU_LIMIT_MB");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    PLAY("others", "CUDA_MODULE_LOADING=EAGER", "GPU_LIMIT_COUNT=allocations");
    program_assert_ok(&program);
}

static void test_other_errors_are_no_refusals(void **state)
{
    (void)state;
    PLAY("other errors", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts_that_the_card_has_no_room_for_are_the_drivers_refusals),
        cmocka_unit_test(test_code_settings_and_streams_likewise),
        cmocka_unit_test(test_code_that_is_loaded_by_its_first_use_likewise),
        cmocka_unit_test(test_they_count_without_a_limit_and_without_overhead_too),
        cmocka_unit_test(test_other_errors_are_no_refusals),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
