/* SPDX-License-Identifier: MIT
 *
 * entry_nvml.c: at every moment NVML shows what cuMemGetInfo shows. Which devices, and what it
 * shows without CUDA, is in test_nvml_devices.c.
 */
#include "preload.h"

#include "bare.h"
#include "nvml_ask.h"
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200 };

/* ---- in the started program ---- */

/* GPU_LIMIT_MB=1024 */
static int play_agree(void)
{
    CUdeviceptr linear, managed, async;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = nvml_device(0);
    expect(nvml_agrees(device));
    expect(cuMemAlloc_v2(&linear, MIB(100) + 1) == CUDA_SUCCESS && nvml_agrees(device));
    expect(cuMemAllocManaged(&managed, MIB(200), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    expect(nvml_agrees(device));
    expect(cuMemAllocAsync(&async, MIB(100), NULL) == CUDA_SUCCESS && nvml_agrees(device));
    expect(nvml_ask(device, &memory) && memory.total == MIB(1024));
    expect(memory.used == preload_device()->charged_bytes && memory.used >= MIB(102 + 200 + 128));
    expect(cuMemFreeAsync(async, NULL) == CUDA_SUCCESS && nvml_agrees(device));
    expect(cuStreamSynchronize(NULL) == CUDA_SUCCESS && nvml_agrees(device));
    expect(cuMemAlloc_v2(&async, memory.free + MIB(256)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(nvml_agrees(device));
    expect(cuMemFree_v2(managed) == CUDA_SUCCESS && cuMemFree_v2(linear) == CUDA_SUCCESS);
    expect(nvml_agrees(device));
    expect(cuMemFree_v2(async) == CUDA_SUCCESS); /* 0: it was refused */
    return 0;
}

/* What is freed in stream order comes back at a moment that no call of ours sees. */
static int play_late(void)
{
    CUdeviceptr async;
    CUstream stream;
    nvmlMemory_t before, after;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = nvml_device(0);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(nvml_ask(device, &before));
    expect(cuMemAllocAsync(&async, MIB(100), stream) == CUDA_SUCCESS);
    expect(cuMemFreeAsync(async, stream) == CUDA_SUCCESS);
    expect(bare_find_loader(NULL) == 0);
    CUresult (*synchronize)(CUstream) = NULL;
    *(void **)&synchronize = bare_dlsym(bare_driver(), "cuStreamSynchronize");
    expect(synchronize(stream) == CUDA_SUCCESS);
    expect(nvml_ask(device, &after)); /* first, before cuMemGetInfo looks */
    expect(after.free == before.free && nvml_agrees(device));
    return 0;
}

/* The calls that a capture would not survive are not made. */
static int play_capture(void)
{
    CUdeviceptr linear, async;
    CUstream stream;
    CUgraph graph;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = nvml_device(0);
    expect(cuMemAllocAsync(&async, MIB(100), NULL) == CUDA_SUCCESS); /* a pool to look at */
    expect(cuMemAlloc_v2(&linear, MIB(100)) == CUDA_SUCCESS);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    expect(nvml_ask(device, &memory) && memory.total == MIB(1024) && memory.free <= MIB(824));
    expect(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    return 0;
}

static CUcontext threads_context;
static atomic_uint threads_turn;

static void *thread_says(const char *wrong)
{
    fprintf(stderr, "%s\n", wrong);
    return &threads_turn;
}

/* Every other thread has a context and allocates. Returns NULL if all was right. */
static void *ask_and_allocate(void *argument)
{
    nvmlDevice_t device = argument;
    bool allocates = atomic_fetch_add(&threads_turn, 1) % 2 == 0;
    if (allocates)
        cuCtxSetCurrent(threads_context);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr address = 0;
        nvmlMemory_t memory;
        if (allocates && cuMemAlloc_v2(&address, MIB(50)) != CUDA_SUCCESS)
            return thread_says("an allocation that fits was refused");
        if (nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS || memory.total != MIB(1024) ||
            memory.free > memory.total || memory.used != memory.total - memory.free ||
            (allocates && memory.free > MIB(1024 - 50)))
            return thread_says("figures that cannot be");
        if (allocates && cuMemFree_v2(address) != CUDA_SUCCESS)
            return thread_says("a free failed");
    }
    return NULL;
}

static int play_threads(void)
{
    pthread_t threads[THREADS];
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    expect(cuCtxGetCurrent(&threads_context) == CUDA_SUCCESS);
    nvmlDevice_t device = nvml_device(0);
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, ask_and_allocate, device) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;
        expect(pthread_join(threads[i], &wrong) == 0);
        expect(!wrong);
    }
    expect(nvml_agrees(device));
    return 0;
}

/* GPU_LIMIT_MB=1024 SIMGPU_RESERVED_MB=600: what the card keeps for itself is no part of the limit.
 */
static int play_reserved(void)
{
    CUdeviceptr address;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvml_ask(nvml_device(0), &memory) && memory.total == MIB(1024) && memory.used == 0);
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(700)) == CUDA_SUCCESS);
    expect(nvml_agrees(nvml_device(0)));
    return 0;
}

/* Prints the total and the reserve of device 0. */
static int play_large(void)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    expect(nvmlDeviceGetMemoryInfo_v2(nvml_device(0), &memory) == NVML_SUCCESS);
    expect(memory.total == memory.reserved + memory.free + memory.used);
    printf("%llu %llu", memory.total >> 20, memory.reserved >> 20);
    return 0;
}

static void *ask_elsewhere(void *memory)
{
    return nvml_ask(nvml_device(0), memory) ? NULL : memory;
}

/* SIMGPU_CONTEXT_MB=64: what a kernel brings along at its launch is seen by no call of ours, and
 * the thread that asks has no context to look by. */
static int play_kernel(void)
{
    CUmodule module;
    CUfunction kernel;
    nvmlMemory_t before, after;
    pthread_t thread;
    void *wrong;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    expect(cuModuleLoadData(&module, "simgpu-module code=4194304 heap") == CUDA_SUCCESS);
    expect(cuModuleGetFunction(&kernel, module, "kernel") == CUDA_SUCCESS);
    expect(nvml_ask(nvml_device(0), &before) && before.used >= MIB(64 + 4));
    expect(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_SUCCESS);
    expect(pthread_create(&thread, NULL, ask_elsewhere, &after) == 0);
    expect(pthread_join(thread, &wrong) == 0 && !wrong);
    expect(after.used >= before.used + MIB(8)); /* the heap */
    expect(nvml_agrees(nvml_device(0)));
    return 0;
}

/* In a forked child CUDA is as if it had never been called. */
static int play_fork(void)
{
    CUdeviceptr address;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = nvml_device(0);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    pid_t child = fork();
    if (child == 0)
        _exit(nvml_ask(device, &memory) && memory.total == MIB(1024) && memory.free == MIB(1024)
                  ? 0
                  : 1);
    expect(role_wait(child) == 0);
    expect(nvml_agrees(device));
    return 0;
}

static const struct role roles[] = {
    {"agree", play_agree},     {"late", play_late},       {"kernel", play_kernel},
    {"capture", play_capture}, {"threads", play_threads}, {"reserved", play_reserved},
    {"large", play_large},     {"fork", play_fork},       {0},
};

/* ---- the test ---- */

static struct program program; /* the one started last */

static void assert_plays(const char *role)
{
    program_play(&program, role, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

static void test_both_versions_agree_with_cuda_after_every_call(void **state)
{
    (void)state;
    assert_plays("agree");
}

static void test_they_agree_where_contexts_and_code_take_memory(void **state)
{
    (void)state;
    program_play(&program, "agree", PROGRAM_LIST("GPU_LIMIT_MB=1024", "SIMGPU_CONTEXT_MB=64"));
    program_assert_ok(&program);
    program_play(&program, "kernel", PROGRAM_LIST("GPU_LIMIT_MB=1024", "SIMGPU_CONTEXT_MB=64"));
    program_assert_ok(&program);
}

static void test_what_came_back_unseen_is_looked_for(void **state)
{
    (void)state;
    assert_plays("late");
}

static void test_a_capture_goes_on(void **state)
{
    (void)state;
    assert_plays("capture");
}

static void test_threads_with_and_without_a_context_see_the_limit(void **state)
{
    (void)state;
    assert_plays("threads");
}

static void test_a_forked_child_sees_an_untouched_limit(void **state)
{
    (void)state;
    assert_plays("fork");
}

static void test_the_cards_own_reserve_is_no_part_of_a_limit(void **state)
{
    (void)state;
    program_play(&program, "reserved", PROGRAM_LIST("GPU_LIMIT_MB=1024", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    program_play(&program, "large", PROGRAM_LIST("GPU_LIMIT_MB=100%", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8192 0");
    program_play(&program, "large", PROGRAM_LIST("GPU_LIMIT_MB=100G", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8792 600");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_versions_agree_with_cuda_after_every_call),
        cmocka_unit_test(test_they_agree_where_contexts_and_code_take_memory),
        cmocka_unit_test(test_what_came_back_unseen_is_looked_for),
        cmocka_unit_test(test_a_capture_goes_on),
        cmocka_unit_test(test_threads_with_and_without_a_context_see_the_limit),
        cmocka_unit_test(test_a_forked_child_sees_an_untouched_limit),
        cmocka_unit_test(test_the_cards_own_reserve_is_no_part_of_a_limit),
    };
    return count > 1 ? role_play(roles, words[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
