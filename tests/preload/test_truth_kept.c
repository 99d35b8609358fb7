/* SPDX-License-Identifier: MIT
 *
 * What a context keeps once it has it: streams, of which every fourth takes 2 MiB, stacks, and the
 * heap of device code, which is charged when it is set and taken by the first kernel that uses it.
 */
#include "preload.h"

#include "figure.h"
#include "program.h"

#include <stdio.h>
#include <unistd.h>

#define CONTEXT       MIB(64)
#define HEAP_CODE     MIB(138) /* of the first module that uses one */
#define THREADS       (132 * 2048)
#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* ---- in the started program ---- */

static char untouched; /* its address: what an output was before */

static const struct gpulimit_device *device(void)
{
    return preload_device();
}

/* GPU_LIMIT_MB=160 */
static int play_streams_near(void)
{
    CUdeviceptr rest;
    CUstream stream = (CUstream)&untouched;
    unsigned made = 0;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&rest, MIB(92)) == CUDA_SUCCESS);
    while (made < 64 && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
        made++;
        expect(device()->charged_bytes == simgpu_process_used(0));
    }
    expect(made >= 8 && made < 64);
    expect(simgpu_process_peak(0) <= MIB(162));
    expect(device()->charged_bytes == figure_of(0));
    CUstream last = stream = (CUstream)&untouched;
    expect(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == OUT_OF_MEMORY);
    expect(stream == last && simgpu_process_peak(0) <= MIB(162));
    expect(cuMemFree_v2(rest) == CUDA_SUCCESS && figure_is(0, simgpu_process_used(0)));
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    return 0;
}

/* GPU_LIMIT_MB=160. The one that does not fit is undone. */
static int play_stream_too_many(void)
{
    CUdeviceptr rest;
    CUstream streams[5];
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&rest, MIB(96)) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 4; i++)
        expect(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    streams[4] = (CUstream)&untouched;
    expect(cuStreamCreate(&streams[4], CU_STREAM_NON_BLOCKING) == OUT_OF_MEMORY);
    expect(streams[4] == (CUstream)&untouched);
    expect(cuStreamCreateWithPriority(&streams[4], CU_STREAM_NON_BLOCKING, 0) == OUT_OF_MEMORY);
    expect(streams[4] == (CUstream)&untouched && simgpu_process_peak(0) <= MIB(162));
    expect(simgpu_calls("cuStreamCreateWithPriority") == 0); /* over the limit, it is not asked */
    return 0;
}

/* GPU_LIMIT_MB=1024 */
static int play_streams_far(void)
{
    CUstream stream;
    expect(role_begin() == 0);
    for (unsigned i = 0; i < 64; i++)
        expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    usleep(110000);
    expect(preload_free() == MIB(1024 - 64 - 34) && figure_is(0, CONTEXT + MIB(34)));
    expect(cuStreamDestroy_v2(stream) == CUDA_SUCCESS && figure_is(0, CONTEXT + MIB(34)));
    return 0;
}

/* GPU_LIMIT_MB=1024 */
static int play_stack(void)
{
    CUcontext context;
    uint64_t more = (uint64_t)THREADS * 1040; /* to the byte, no multiple of a block */
    expect(role_begin() == 0);
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024 + 1040) == CUDA_SUCCESS);
    expect(figure_of(0) - CONTEXT >= more && figure_of(0) - CONTEXT < more + MIB(2));
    expect(figure_is(0, figure_of(0)));
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048) == CUDA_SUCCESS);
    expect(figure_is(0, 2 * CONTEXT + MIB(264)));
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    return 0;
}

static int run_heap_kernel(CUmodule module)
{
    CUfunction function;
    expect(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    usleep(110000); /* that has looked, in vain */
    expect(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_SUCCESS);
    expect(cuCtxSynchronize() == CUDA_SUCCESS);
    return 0;
}

/* A heap of 400 MiB is set: charged, and not there yet. */
static int set_heap(uint64_t *promised)
{
    size_t before;
    uint64_t figure = figure_of(0);
    expect(cuCtxGetLimit(&before, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
    expect(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, MIB(400)) == CUDA_SUCCESS);
    *promised = MIB(400) - before;
    expect(device()->hidden_bytes == *promised && figure_is(0, figure));
    return 0;
}

/* GPU_LIMIT_MB=1024 */
static int play_heap(void)
{
    CUmodule module;
    CUdeviceptr none;
    uint64_t promised;
    expect(role_begin() == 0 && set_heap(&promised) == 0);
    expect(cuMemAlloc_v2(&none, MIB(960) - promised + 1) == OUT_OF_MEMORY);
    expect(cuModuleLoadData(&module, "simgpu-module heap") == CUDA_SUCCESS);
    /* The code is no heap: what was promised still is. */
    expect(device()->hidden_bytes == promised && figure_is(0, CONTEXT + HEAP_CODE));
    expect(cuMemAlloc_v2(&none, MIB(960) - HEAP_CODE - promised + 1) == OUT_OF_MEMORY);
    expect(run_heap_kernel(module) == 0);
    expect(figure_is(0, CONTEXT + HEAP_CODE + MIB(402)) && device()->hidden_bytes == 0);
    expect(preload_free() == MIB(1024 - 64 - 138 - 402));
    expect(cuModuleUnload(module) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + HEAP_CODE + MIB(402)));
    return 0;
}

/* GPU_LIMIT_MB=1024. A kernel without a heap brings 50 MiB of code along. */
static int play_heap_and_code(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    uint64_t promised;
    expect(role_begin() == 0 && set_heap(&promised) == 0);
    expect(cuLibraryLoadData(&library, "simgpu-module code=52428800", NULL, NULL, 0, NULL, NULL,
                             0) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    expect(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
    expect(device()->hidden_bytes == promised && figure_is(0, CONTEXT + MIB(50)));
    return 0;
}

/* GPU_LIMIT_MB=1024. The code is there before. */
static int play_heap_later(void)
{
    CUmodule module;
    uint64_t promised;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module heap") == CUDA_SUCCESS);
    expect(set_heap(&promised) == 0 && run_heap_kernel(module) == 0);
    expect(figure_is(0, CONTEXT + HEAP_CODE + MIB(402)) && device()->hidden_bytes == 0);
    return 0;
}

/* GPU_LIMIT_MB=1024. The first look after the kernel is that of a module. */
static int play_heap_then_code(void)
{
    CUmodule module, other;
    CUfunction function;
    uint64_t promised;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module heap") == CUDA_SUCCESS);
    expect(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    expect(set_heap(&promised) == 0);
    expect(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_SUCCESS);
    expect(cuModuleLoadData(&other, "simgpu-module code=4194304") == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + HEAP_CODE + MIB(406)) && device()->hidden_bytes == 0);
    return 0;
}

/* GPU_LIMIT_MB=1024. Of two contexts one has a heap, taken or not. */
static int play_heap_goes(void)
{
    CUcontext context;
    CUmodule module;
    uint64_t promised;
    expect(role_begin() == 0);
    for (unsigned is_taken = 0; is_taken < 2; is_taken++) {
        expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS && set_heap(&promised) == 0);
        if (is_taken) {
            expect(cuModuleLoadData(&module, "simgpu-module heap") == CUDA_SUCCESS);
            expect(run_heap_kernel(module) == 0);
        }
        expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        expect(figure_is(0, CONTEXT) && device()->hidden_bytes == 0);
    }
    return 0;
}

static const struct role roles[] = {{"streams near", play_streams_near},
                                    {"stream too many", play_stream_too_many},
                                    {"streams far", play_streams_far},
                                    {"stack", play_stack},
                                    {"heap", play_heap},
                                    {"heap and code", play_heap_and_code},
                                    {"heap later", play_heap_later},
                                    {"heap then code", play_heap_then_code},
                                    {"heap goes", play_heap_goes},
                                    {0}};

/* ---- in the test ---- */

static void play(const char *role, const char *limit)
{
    static struct program program;
    program_play(&program, role, PROGRAM_LIST(limit));
    program_assert_ok(&program);
}

static void test_near_the_limit_streams_pass_it_by_a_block_at_most(void **state)
{
    (void)state;
    play("streams near", "GPU_LIMIT_MB=160");
    play("stream too many", "GPU_LIMIT_MB=160");
}

static void test_far_from_the_limit_streams_are_counted_at_the_next_look(void **state)
{
    (void)state;
    play("streams far", "GPU_LIMIT_MB=1024");
}

static void test_a_stack_is_measured_to_the_byte(void **state)
{
    (void)state;
    play("stack", "GPU_LIMIT_MB=1024");
}

static void test_a_heap_is_charged_when_set_and_not_again_when_taken(void **state)
{
    (void)state;
    play("heap later", "GPU_LIMIT_MB=1024");
    play("heap then code", "GPU_LIMIT_MB=1024");
}

static void test_code_that_is_loaded_meanwhile_is_not_taken_for_the_heap(void **state)
{
    (void)state;
    play("heap", "GPU_LIMIT_MB=1024");
    play("heap and code", "GPU_LIMIT_MB=1024");
}

static void test_a_heap_goes_with_its_context(void **state)
{
    (void)state;
    play("heap goes", "GPU_LIMIT_MB=1024");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_the_limit_streams_pass_it_by_a_block_at_most),
        cmocka_unit_test(test_far_from_the_limit_streams_are_counted_at_the_next_look),
        cmocka_unit_test(test_a_stack_is_measured_to_the_byte),
        cmocka_unit_test(test_a_heap_is_charged_when_set_and_not_again_when_taken),
        cmocka_unit_test(test_code_that_is_loaded_meanwhile_is_not_taken_for_the_heap),
        cmocka_unit_test(test_a_heap_goes_with_its_context),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
