/* SPDX-License-Identifier: MIT
 *
 * NVML is asked only where overhead counts, not before there is a context, for the right process
 * and the right device, and so that no stream capture ends by it. What it says: test_truth.c.
 */
#include "preload.h"

#include "figure.h"
#include "program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONTEXT       MIB(64)
#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* ---- in the started program ---- */

static uint64_t overhead(int device)
{
    return preload_device()[device].overhead_bytes;
}

/* Takes all sorts of overhead. */
static int take_overhead(void)
{
    CUcontext context;
    CUmodule module;
    CUstream stream;
    expect(cuModuleLoadData(&module, "simgpu-module code=4194304") == CUDA_SUCCESS);
    for (unsigned i = 0; i < 8; i++)
        expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048) == CUDA_SUCCESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(cuCtxSynchronize() == CUDA_SUCCESS);
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
    expect(cuModuleUnload(module) == CUDA_SUCCESS);
    return 0;
}

/* GPU_LIMIT_MB=32, GPU_LIMIT_COUNT=allocations */
static int play_uncounted(void)
{
    CUdeviceptr all, none;
    expect(role_begin() == 0 && take_overhead() == 0);
    expect(preload_free() == MIB(32));
    expect(cuMemAlloc_v2(&all, MIB(32)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&none, 1) == OUT_OF_MEMORY);
    expect(overhead(0) == 0 && preload_device()->charged_bytes == MIB(32));
    expect(preload_device()->truth_source == GPULIMIT_TRUTH_OFF);
    expect(!figure_has_nvml());
    return 0;
}

static int play_no_context(void)
{
    CUcontext context;
    CUdeviceptr none;
    int count;
    size_t total;
    unsigned flags;
    expect(!figure_has_nvml());
    expect(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS);
    expect(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == MIB(1024));
    expect(cuDevicePrimaryCtxGetState(0, &flags, &count) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&none, 1) == CUDA_ERROR_INVALID_CONTEXT);
    expect(!figure_has_nvml());
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(figure_has_nvml()); /* so that is how it would look */
    return 0;
}

/* Each of two processes, of which one is the other's child. */
static int be_one_of_two(uint64_t bytes)
{
    CUdeviceptr address;
    expect(role_begin() == 0 && figure_is(0, CONTEXT));
    expect(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS && figure_is(0, CONTEXT + bytes));
    return 0;
}

static int play_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(be_one_of_two(MIB(100)));
    expect(be_one_of_two(MIB(10)) == 0);
    expect(role_wait(child) == 0 && figure_is(0, CONTEXT + MIB(10)));
    return 0;
}

/* Which devices there are, the last one first: a context on each, and memory of its own size. */
static int play_devices(void)
{
    CUcontext context;
    CUdeviceptr address;
    int count;
    expect(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS);
    for (int device = count; device-- > 0;) {
        uint64_t bytes = MIB(2) * (unsigned)(device + 1);
        expect(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
        expect(figure_is(device, CONTEXT) && overhead(device) == CONTEXT);
        expect(device == 0 || overhead(device - 1) == 0);
        expect(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        expect(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS);
        expect(figure_is(device, CONTEXT + bytes) && overhead(device) == CONTEXT);
    }
    printf("%llu %llu", (unsigned long long)simgpu_process_used(0) >> 20,
           (unsigned long long)simgpu_process_used(1) >> 20);
    return 0;
}

static int play_uuid(void)
{
    CUcontext context;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
    printf("%.47s", preload_device()[1].gpu_uuid);
    return 0;
}

/* GPU_LIMIT_MB=160 */
static int play_capture(void)
{
    CUcontext context;
    CUdeviceptr none;
    CUfunction function;
    CUgraph graph;
    CUkernel kernel;
    CUlibrary library;
    CUstream stream, other;
    expect(role_begin() == 0);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuLibraryLoadData(&library, "simgpu-module code=4194304", NULL, NULL, 0, NULL, NULL,
                             0) == CUDA_SUCCESS);
    usleep(110000); /* so that all looks are due */
    expect(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    expect(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
    expect(preload_free() == MIB(92) && figure_is(0, CONTEXT + MIB(4)));
    expect(cuMemAlloc_v2(&none, MIB(94)) == OUT_OF_MEMORY);
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(figure_is(0, 2 * CONTEXT + MIB(4)));
    expect(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS && figure_is(0, CONTEXT + MIB(4)));
    expect(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    return 0;
}

static const struct role roles[] = {{"uncounted", play_uncounted},
                                    {"no context", play_no_context},
                                    {"fork", play_fork},
                                    {"devices", play_devices},
                                    {"uuid", play_uuid},
                                    {"capture", play_capture},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

static void play(const char *role, const char *limit)
{
    program_play(&program, role, PROGRAM_LIST(limit));
    program_assert_ok(&program);
}

static void test_nobody_asks_where_allocations_alone_count(void **state)
{
    (void)state;
    program_play(&program, "uncounted",
                 PROGRAM_LIST("GPU_LIMIT_MB=32", "GPU_LIMIT_COUNT=allocations"));
    program_assert_ok(&program);
}

static void test_nvml_is_not_loaded_before_there_is_a_context(void **state)
{
    (void)state;
    play("no context", "GPU_LIMIT_MB=1024");
}

static void test_a_forked_child_has_a_figure_of_its_own(void **state)
{
    (void)state;
    play("fork", "GPU_LIMIT_MB=200");
}

static void assert_devices(const char *visible, const char *expected)
{
    program_play(&program, "devices",
                 PROGRAM_LIST("GPU_LIMIT_MB=200", "SIMGPU_DEVICES=2", visible));
    program_assert_ok(&program);
    assert_string_equal(program.out, expected);
}

static void test_overhead_is_charged_on_the_device_that_has_it(void **state)
{
    char visible[128];
    (void)state;
    assert_devices("CUDA_VISIBLE_DEVICES", "66 68");
    assert_devices("CUDA_VISIBLE_DEVICES=1", "0 66");
    assert_devices("CUDA_VISIBLE_DEVICES=1,0", "68 66");
    program_play(&program, "uuid", PROGRAM_LIST("GPU_LIMIT_MB=200", "SIMGPU_DEVICES=2"));
    program_assert_ok(&program);
    snprintf(visible, sizeof visible, "CUDA_VISIBLE_DEVICES=%.60s", program.out);
    assert_devices(visible, "0 66");
}

static void test_a_capture_survives_all_looks(void **state)
{
    (void)state;
    play("capture", "GPU_LIMIT_MB=160");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_asks_where_allocations_alone_count),
        cmocka_unit_test(test_nvml_is_not_loaded_before_there_is_a_context),
        cmocka_unit_test(test_a_forked_child_has_a_figure_of_its_own),
        cmocka_unit_test(test_overhead_is_charged_on_the_device_that_has_it),
        cmocka_unit_test(test_a_capture_survives_all_looks),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
