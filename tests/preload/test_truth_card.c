/* SPDX-License-Identifier: MIT
 *
 * Where NVML does not tell what the process holds, in a pid namespace, in some virtual machines, or
 * because there is no NVML: what contexts, code, stacks and streams take is what the card has less
 * after the call, one call of all processes at a time.
 */
#include "preload.h"

#include "figure.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXT       MIB(64)
#define GUESS         MIB(528) /* twice the stacks of 132 x 2048 threads */
#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* ---- in the started program ---- */

static char untouched; /* its address: what an output was before */

static const struct gpulimit_device *device(void)
{
    return preload_device();
}

/* GPU_LIMIT_MB=1024 */
static int play_card(void)
{
    CUcontext context, first;
    CUdeviceptr address;
    CUmodule module;
    CUstream stream;
    expect(role_begin() == 0 && figure_is_unlisted(0, CONTEXT));
    expect(cuCtxGetCurrent(&first) == CUDA_SUCCESS);
    expect(device()->truth_source == GPULIMIT_TRUTH_DELTA && preload_free() == MIB(960));
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    expect(cuModuleLoadData(&module, "simgpu-module code=52428800") == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(150)));
    expect(cuModuleUnload(module) == CUDA_SUCCESS && figure_is_unlisted(0, CONTEXT + MIB(100)));
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(364)));
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(100)));
    for (unsigned i = 0; i < 8; i++)
        expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(104)));
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(10)) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, 2 * CONTEXT + MIB(114)));
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(104)));
    expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && figure_is_unlisted(0, 0));
    expect(device()->truth_source == GPULIMIT_TRUTH_DELTA);
    return 0;
}

/* GPU_LIMIT_MB=160. The last one takes its primary context along. */
static int play_green(void)
{
    CUdevResource all;
    CUdevResourceDesc desc;
    CUgreenCtx greens[2];
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    expect(cuDevResourceGenerateDesc(&desc, &all, 1) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        expect(cuGreenCtxCreate(&greens[i], desc, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
        expect(figure_is_unlisted(0, CONTEXT + MIB(6) * (i + 1)));
    }
    expect(cuGreenCtxDestroy(greens[0]) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(12)));
    expect(cuGreenCtxDestroy(greens[1]) == CUDA_SUCCESS && figure_is_unlisted(0, 0));
    return 0;
}

/* GPU_LIMIT_MB=160 */
static int play_lazy(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    expect(role_begin() == 0);
    expect(cuLibraryLoadData(&library, "simgpu-module code=52428800", NULL, NULL, 0, NULL, NULL,
                             0) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    expect(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
    expect(figure_is_unlisted(0, CONTEXT + MIB(50)));
    expect(cuLibraryUnload(library) == CUDA_SUCCESS && figure_is_unlisted(0, CONTEXT));
    return 0;
}

/* GPU_LIMIT_MB=160 */
static int play_refusals(void)
{
    CUcontext context = (CUcontext)&untouched;
    CUdeviceptr half;
    CUmodule module = (CUmodule)&untouched;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module code=104857600") == OUT_OF_MEMORY);
    expect(module == (CUmodule)&untouched && figure_is_unlisted(0, CONTEXT));
    expect(cuMemAlloc_v2(&half, MIB(64)) == CUDA_SUCCESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY && context == (CUcontext)&untouched);
    expect(simgpu_calls("cuCtxCreate_v2") == 0 && figure_is_unlisted(0, CONTEXT + MIB(64)));
    return 0;
}

/* GPU_LIMIT_MB=32 */
static int play_too_large(void)
{
    CUcontext context = (CUcontext)&untouched;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == OUT_OF_MEMORY);
    expect(context == (CUcontext)&untouched && figure_is_unlisted(0, 0));
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY && figure_is_unlisted(0, 0));
    expect(simgpu_calls("cuCtxCreate_v2") == 0);
    return 0;
}

/* One of two processes that make contexts and load code at once, each of its own size. */
static int be_one_of_two(const char *image, uint64_t bytes)
{
    CUcontext context;
    CUmodule module;
    expect(role_begin() == 0 && figure_is_unlisted(0, CONTEXT));
    for (unsigned round = 0; round < 100; round++) {
        expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        expect(figure_is_unlisted(0, 2 * CONTEXT));
        expect(cuModuleLoadData(&module, image) == CUDA_SUCCESS);
        expect(figure_is_unlisted(0, 2 * CONTEXT + bytes));
        expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS && figure_is_unlisted(0, CONTEXT));
    }
    return 0;
}

static int play_two_at_once(void)
{
    int done[2], there;
    char nothing;
    expect(pipe(done) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(done[1]);
        there = be_one_of_two("simgpu-module code=10485760", MIB(10));
        /* Its end gives memory back as well, and that is no call that waits its turn. */
        _exit(read(done[0], &nothing, 1) != 0 || there);
    }
    int here = be_one_of_two("simgpu-module code=31457280", MIB(30));
    close(done[1]);
    expect(role_wait(child) == 0 && here == 0);
    return 0;
}

/* How much more is charged than is held: the first context is guessed, all else is exact. */
static uint64_t charged_too_much(void)
{
    return device()->charged_bytes - simgpu_process_used(0);
}

/* GPU_LIMIT_MB=1024, and nobody to ask but CUDA itself. */
static int play_alone(void)
{
    CUcontext context;
    CUdeviceptr address;
    CUmodule module;
    expect(role_begin() == 0 && device()->overhead_bytes == GUESS);
    expect(device()->truth_source == GPULIMIT_TRUTH_DELTA && preload_free() == MIB(1024) - GUESS);
    uint64_t before = charged_too_much();
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS && charged_too_much() == before);
    expect(cuModuleLoadData(&module, "simgpu-module code=52428800") == CUDA_SUCCESS);
    expect(charged_too_much() == before && device()->overhead_bytes == GUESS + MIB(50));
    expect(cuModuleUnload(module) == CUDA_SUCCESS && device()->overhead_bytes == GUESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY); /* another of such a size */
    expect(cuMemFree_v2(address) == CUDA_SUCCESS);
    expect(!figure_has_nvml());
    return 0;
}

/* GPU_LIMIT_MB=2048 */
static int play_alone_twice(void)
{
    CUcontext context, first;
    CUdeviceptr address;
    expect(role_begin() == 0 && cuCtxGetCurrent(&first) == CUDA_SUCCESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(device()->overhead_bytes == GUESS + CONTEXT);
    expect(cuCtxSetCurrent(first) == CUDA_SUCCESS && cuCtxDestroy_v2(context) == CUDA_SUCCESS);
    expect(device()->overhead_bytes == GUESS);
    for (unsigned round = 0; round < 5; round++) {
        expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
        expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && simgpu_process_used(0) == 0);
        expect(device()->charged_bytes == 0);
        expect(role_begin() == 0 && device()->charged_bytes >= CONTEXT);
    }
    return 0;
}

static const struct role roles[] = {{"card", play_card},
                                    {"green", play_green},
                                    {"lazy", play_lazy},
                                    {"refusals", play_refusals},
                                    {"too large", play_too_large},
                                    {"two at once", play_two_at_once},
                                    {"alone", play_alone},
                                    {"alone twice", play_alone_twice},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

static void play(const char *role, const char *limit, const char *how)
{
    program_play(&program, role, PROGRAM_LIST(limit, how));
    program_assert_ok(&program);
}

static void test_in_a_pid_namespace_each_call_is_measured_by_the_card(void **state)
{
    (void)state;
    play("card", "GPU_LIMIT_MB=1024", "SIMGPU_HIDE_PROCESSES=1");
    play("lazy", "GPU_LIMIT_MB=160", "SIMGPU_HIDE_PROCESSES=1");
    play("green", "GPU_LIMIT_MB=160", "SIMGPU_HIDE_PROCESSES=1");
}

static void test_a_figure_that_nvml_does_not_know_is_none(void **state)
{
    (void)state;
    play("card", "GPU_LIMIT_MB=1024", "SIMGPU_HIDE_FIGURES=1");
}

static void test_by_the_card_too_what_does_not_fit_is_undone(void **state)
{
    (void)state;
    play("refusals", "GPU_LIMIT_MB=160", "SIMGPU_HIDE_PROCESSES=1");
    play("too large", "GPU_LIMIT_MB=32", "SIMGPU_HIDE_PROCESSES=1");
}

static void test_of_two_processes_each_is_charged_its_own(void **state)
{
    (void)state;
    play("two at once", "GPU_LIMIT_MB=1024", "SIMGPU_HIDE_PROCESSES=1");
}

/* A folder with the driver and without NVML. */
static void play_without_nvml(const char *role, const char *limit)
{
    char folder[] = "/tmp/test_truth.XXXXXX", driver[512], target[512], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(driver, sizeof driver, "%.200s/libcuda.so.1", folder);
    snprintf(target, sizeof target, "%.400s/libcuda.so.1", getenv("PRELOAD_SIMGPU"));
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", folder);
    assert_int_equal(symlink(target, driver), 0);
    program_play(&program, role, PROGRAM_LIST(limit, path));
    unlink(driver);
    rmdir(folder);
    program_assert_ok(&program);
}

static void test_without_nvml_the_first_context_is_guessed_and_the_rest_is_exact(void **state)
{
    (void)state;
    play_without_nvml("alone", "GPU_LIMIT_MB=1024");
    play_without_nvml("too large", "GPU_LIMIT_MB=512");
}

static void test_without_nvml_nothing_is_charged_once_the_last_context_is_gone(void **state)
{
    (void)state;
    play_without_nvml("alone twice", "GPU_LIMIT_MB=2048");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_a_pid_namespace_each_call_is_measured_by_the_card),
        cmocka_unit_test(test_a_figure_that_nvml_does_not_know_is_none),
        cmocka_unit_test(test_by_the_card_too_what_does_not_fit_is_undone),
        cmocka_unit_test(test_of_two_processes_each_is_charged_its_own),
        cmocka_unit_test(test_without_nvml_the_first_context_is_guessed_and_the_rest_is_exact),
        cmocka_unit_test(test_without_nvml_nothing_is_charged_once_the_last_context_is_gone),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
