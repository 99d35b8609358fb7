/* SPDX-License-Identifier: MIT
 *
 * Contexts, which take memory that nobody asked for: measured by NVML's figure for the process,
 * charged, refused where they do not fit. Each simulated one takes 64 MiB. When and of which device
 * NVML is asked: test_truth_nvml.c; where it cannot tell: test_truth_card.c. What else the driver
 * takes: test_truth_code.c.
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

static char untouched; /* its address: what an output was before */

static uint64_t overhead(int device)
{
    return preload_device()[device].overhead_bytes;
}

/* GPU_LIMIT_MB=160 */
static int play_first(void)
{
    CUdeviceptr rest, none;
    expect(role_begin() == 0);
    expect(figure_is(0, CONTEXT) && overhead(0) == CONTEXT);
    expect(preload_device()->truth_source == GPULIMIT_TRUTH_NVML);
    expect(preload_free() == MIB(96));
    expect(cuMemAlloc_v2(&none, MIB(96) + 1) == OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&rest, MIB(96)) == CUDA_SUCCESS);
    expect(preload_free() == 0);
    expect(cuMemAlloc_v2(&none, 1) == OUT_OF_MEMORY);
    expect(figure_is(0, MIB(160)) && simgpu_process_peak(0) == MIB(160));
    expect(cuMemFree_v2(rest) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && figure_is(0, 0));
    return 0;
}

static int nothing_is_there(void)
{
    CUcontext current = (CUcontext)&untouched;
    expect(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == NULL);
    expect(simgpu_process_used(0) == 0 && figure_is(0, 0));
    return 0;
}

/* GPU_LIMIT_MB=32 */
static int play_too_large(void)
{
    CUcontext context = (CUcontext)&untouched;
    unsigned flags;
    int is_active;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY && context == (CUcontext)&untouched);
    expect(nothing_is_there() == 0);
    /* It is known from now on what one takes. */
    expect(simgpu_process_peak(0) == CONTEXT);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == OUT_OF_MEMORY);
    expect(context == (CUcontext)&untouched);
    expect(cuDevicePrimaryCtxGetState(0, &flags, &is_active) == CUDA_SUCCESS && !is_active);
    expect(nothing_is_there() == 0);
    expect(simgpu_process_peak(0) == 0 && preload_device()->denials == 2);
    return 0;
}

/* GPU_LIMIT_MB=32 */
static int play_too_large_primary(void)
{
    CUcontext context = (CUcontext)&untouched;
    unsigned flags;
    int is_active;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == OUT_OF_MEMORY);
    expect(context == (CUcontext)&untouched && simgpu_process_peak(0) == CONTEXT);
    expect(cuDevicePrimaryCtxGetState(0, &flags, &is_active) == CUDA_SUCCESS && !is_active);
    return nothing_is_there();
}

/* GPU_LIMIT_MB=1024, and a context takes 518 MiB: too much beside memory that needs none. */
static int play_beside(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    CUcontext context = (CUcontext)&untouched;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuMemCreate(&handle, MIB(600), &prop, 0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == OUT_OF_MEMORY);
    expect(context == (CUcontext)&untouched && simgpu_calls("cuDevicePrimaryCtxRetain") == 0);
    expect(cuMemRelease(handle) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    return 0;
}

/* GPU_LIMIT_MB=160 */
static int play_second(void)
{
    CUdeviceptr half, none;
    CUcontext context = (CUcontext)&untouched, first;
    expect(role_begin() == 0 && cuCtxGetCurrent(&first) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&half, MIB(64)) == CUDA_SUCCESS);
    simgpu_process_peak(0);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY && context == (CUcontext)&untouched);
    expect(cuCtxCreate_v3(&context, NULL, 0, 0, 0) == OUT_OF_MEMORY);
    expect(cuCtxCreate_v4(&context, NULL, 0, 0) == OUT_OF_MEMORY);
    expect(simgpu_calls("cuCtxCreate_v2") + simgpu_calls("cuCtxCreate_v3") == 0);
    expect(simgpu_process_peak(0) == MIB(128) && figure_is(0, MIB(128)));
    expect(cuMemFree_v2(half) == CUDA_SUCCESS);

    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS && figure_is(0, 2 * CONTEXT));
    expect(cuMemAlloc_v2(&none, MIB(34)) == OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&half, MIB(32)) == CUDA_SUCCESS && figure_is(0, MIB(160)));
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    expect(cuCtxCreate_v3(&context, NULL, 0, 0, 0) == CUDA_SUCCESS && figure_is(0, 2 * CONTEXT));
    expect(cuCtxDetach(context) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    expect(cuCtxSetCurrent(first) == CUDA_SUCCESS && preload_free() == MIB(96));
    return 0;
}

/* A pool that keeps what it has, and memory of cuMemCreate: 36 MiB that outlive a context. */
static int keep_36(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    cuuint64_t threshold = UINT64_MAX;
    CUmemoryPool pool;
    CUdeviceptr address;
    expect(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    expect(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
           CUDA_SUCCESS);
    expect(cuMemAllocAsync(&address, MIB(10), NULL) == CUDA_SUCCESS);
    expect(cuMemCreate(&handle, MIB(4), &prop, 0) == CUDA_SUCCESS);
    return 0;
}

static int only_36_are_left(void)
{
    expect(figure_of(0) == 0); /* not listed */
    expect(figure_is_unlisted(0, MIB(36)) && overhead(0) == 0);
    expect(role_begin() == 0);
    expect(figure_is(0, CONTEXT + MIB(36)) && preload_free() == MIB(1024 - 64 - 36));
    return 0;
}

/* GPU_LIMIT_MB=1024 */
static int play_reset(void)
{
    CUdeviceptr linear;
    expect(role_begin() == 0 && keep_36() == 0);
    expect(cuMemAlloc_v2(&linear, MIB(20)) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + MIB(56)));
    expect(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS && only_36_are_left() == 0);
    return 0;
}

static int play_release(void)
{
    CUcontext context;
    expect(role_begin() == 0 && keep_36() == 0);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS); /* of two users */
    expect(figure_is(0, CONTEXT + MIB(36)));
    expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && only_36_are_left() == 0);
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

/* GPU_LIMIT_MB=160. Each takes 6 MiB of its primary context's, which that one keeps. */
static int play_green(void)
{
    CUgreenCtx first, second;
    CUstream stream;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(create_green(&first) == 0 && figure_is(0, CONTEXT + MIB(6)));
    expect(create_green(&second) == 0 && figure_is(0, CONTEXT + MIB(12)));
    for (unsigned i = 0; i < 8; i++)
        expect(cuGreenCtxStreamCreate(&stream, second, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    expect(cuGreenCtxDestroy(second) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + MIB(12 + 4)));
    expect(cuGreenCtxDestroy(first) == CUDA_SUCCESS && figure_is(0, 0));
    return 0;
}

/* GPU_LIMIT_MB=66 */
static int play_green_too_large(void)
{
    CUgreenCtx green = (CUgreenCtx)&untouched;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(create_green(&green) == OUT_OF_MEMORY && green == (CUgreenCtx)&untouched);
    expect(nothing_is_there() == 0);
    expect(role_begin() == 0 && figure_is(0, CONTEXT)); /* without, it does fit */
    return 0;
}

static const struct role roles[] = {{"first", play_first},
                                    {"too large", play_too_large},
                                    {"too large primary", play_too_large_primary},
                                    {"beside", play_beside},
                                    {"second", play_second},
                                    {"reset", play_reset},
                                    {"release", play_release},
                                    {"green", play_green},
                                    {"green too large", play_green_too_large},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

static void play(const char *role, const char *limit)
{
    program_play(&program, role, PROGRAM_LIST(limit));
    program_assert_ok(&program);
}

static void test_a_context_is_charged_and_the_rest_can_be_allocated(void **state)
{
    (void)state;
    play("first", "GPU_LIMIT_MB=160");
}

static void test_a_context_larger_than_the_limit_is_undone(void **state)
{
    (void)state;
    play("too large", "GPU_LIMIT_MB=32");
    play("too large primary", "GPU_LIMIT_MB=32");
}

static void test_the_message_names_both_ways_out(void **state)
{
    (void)state;
    program_play(&program, "too large", PROGRAM_LIST("GPU_LIMIT_MB=32", "GPU_LIMIT_VERBOSE=1"));
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "gpulimit: refused a context of 64 MiB on GPU 0: "
                                        "larger than the whole limit of 32 MiB"));
    assert_non_null(strstr(program.err, " (cuCtxCreate_v2) in process "));
    assert_non_null(strstr(program.err, "set GPU_LIMIT_MB to 64 or more, or "
                                        "GPU_LIMIT_COUNT=allocations"));
}

static void test_a_first_context_beside_memory_that_needs_none_is_not_tried(void **state)
{
    (void)state;
    program_play(&program, "beside",
                 PROGRAM_LIST("GPU_LIMIT_MB=1024", "SIMGPU_PROFILE=h200", "SIMGPU_CONTEXT_MB=518"));
    program_assert_ok(&program);
}

static void test_a_second_context_that_cannot_fit_never_reaches_the_driver(void **state)
{
    (void)state;
    play("second", "GPU_LIMIT_MB=160");
}

static void test_overhead_goes_with_the_primary_context_and_lasting_memory_stays(void **state)
{
    (void)state;
    play("reset", "GPU_LIMIT_MB=1024");
    play("release", "GPU_LIMIT_MB=1024");
}

static void test_green_contexts_are_charged_with_the_primary_one_they_bring(void **state)
{
    (void)state;
    play("green", "GPU_LIMIT_MB=160");
}

static void test_a_green_context_does_not_make_others_dearer(void **state)
{
    (void)state;
    play("green too large", "GPU_LIMIT_MB=66");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_context_is_charged_and_the_rest_can_be_allocated),
        cmocka_unit_test(test_a_context_larger_than_the_limit_is_undone),
        cmocka_unit_test(test_the_message_names_both_ways_out),
        cmocka_unit_test(test_a_first_context_beside_memory_that_needs_none_is_not_tried),
        cmocka_unit_test(test_a_second_context_that_cannot_fit_never_reaches_the_driver),
        cmocka_unit_test(test_overhead_goes_with_the_primary_context_and_lasting_memory_stays),
        cmocka_unit_test(test_green_contexts_are_charged_with_the_primary_one_they_bring),
        cmocka_unit_test(test_a_green_context_does_not_make_others_dearer),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
