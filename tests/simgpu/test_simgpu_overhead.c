// SPDX-License-Identifier: MIT
//
// What the simulated GPU gives a process outside any allocation: contexts, streams, and code that
// is loaded everywhere at once. What code takes besides is test_simgpu_kernels.c's.

#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "nvml_api.h"

#define LIBRARY "simgpu-module globals=50331648 code=2097152"

static CUcontext open_context(void)
{
    CUcontext context = NULL;

    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    fixture_took();
    return context;
}

/* ---- streams and events ---- */

static void test_streams_take_2_mib_for_about_every_four_of_them(void **state)
{
    static const struct {
        unsigned streams;
        int took; /* MiB, in all */
    } measured[] = {{1, 0}, {8, 4}, {32, 16}, {64, 34}, {128, 70}};
    CUcontext context = open_context();
    unsigned made = 0;
    int64_t took = 0;
    CUstream stream;

    (void)state;
    for (unsigned i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        for (; made < measured[i].streams; made++)
            assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        took += fixture_took();
        assert_int_equal(took, measured[i].took);
    }
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 70);
}

static void test_the_memory_of_destroyed_streams_waits_for_later_ones(void **state)
{
    CUcontext context = open_context();
    CUstream streams[64];

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 64; i++)
            assert_ok(cuStreamCreateWithPriority(&streams[i], 0, 0));
        assert_int_equal(fixture_took(), round ? 0 : 34);
        for (unsigned i = 0; i < 64; i++)
            assert_ok(cuStreamDestroy_v2(streams[i]));
        assert_int_equal(fixture_took(), 0);
    }
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 34);
}

static void test_a_stream_that_does_not_fit_is_refused(void **state)
{
    CUcontext context = open_context();
    CUstream stream = NULL;
    CUdeviceptr rest;
    unsigned made = 0;
    size_t left;

    (void)state;
    assert_ok(cuMemGetInfo_v2(&left, NULL));
    assert_ok(cuMemAlloc_v2(&rest, left));
    for (; made < 8 && cuStreamCreate(&stream, 0) == CUDA_SUCCESS; made++)
        continue;
    assert_int_equal(made, 4); /* the first few are free */
    stream = (CUstream)state;
    assert_int_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(stream, state);
    assert_ok(cuMemFree_v2(rest));
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuCtxDestroy_v2(context));
    fixture_took();
}

static void test_a_thousand_events_take_nothing(void **state)
{
    CUcontext context = open_context();
    CUevent event;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_ok(cuEventCreate(&event, 0));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuCtxDestroy_v2(context));
    fixture_took();
}

static void test_the_peak_is_what_was_held_meanwhile(void **state)
{
    uint64_t before = simgpu_process_used(0);
    CUdeviceptr at;

    (void)state;
    simgpu_process_peak(0);
    assert_ok(cuMemAlloc_v2(&at, 100 * MIB));
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(simgpu_process_peak(0), before + 100 * MIB);
    assert_int_equal(simgpu_process_peak(0), before);
}

/* ---- in processes of their own, as the environment counts at cuInit ---- */

static int without_overhead(void)
{
    CUcontext context;
    CUstream stream;
    CUdeviceptr at;

    setenv("SIMGPU_CONTEXT_MB", "0", 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 64; i++)
        expect(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
    expect(simgpu_process_used(0) == 0);
    expect(cuMemAlloc_v2(&at, 1) == CUDA_SUCCESS);
    expect(simgpu_process_used(0) == 2 * MIB);
    expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
    expect(simgpu_process_used(0) == 0);
    return 0;
}

static int eager(void)
{
    CUcontext first, second;
    CUlibrary library;
    CUmodule module;
    CUmoduleLoadingMode mode;

    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING);
    expect(cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
    fixture_took();
    expect(cuLibraryLoadData(&library, LIBRARY, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    expect(fixture_took() == 50);
    expect(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
    expect(fixture_took() == 64 + 50);
    expect(cuLibraryGetModule(&module, library) == CUDA_SUCCESS);
    expect(fixture_took() == 0);
    expect(cuLibraryUnload(library) == CUDA_SUCCESS);
    expect(fixture_took() == -100);
    expect(cuModuleLoadData(&module, LIBRARY) == CUDA_SUCCESS);
    expect(fixture_took() == 50);
    expect(cuLibraryLoadData(&library, "garbage", NULL, NULL, 0, NULL, NULL, 0) ==
           CUDA_ERROR_INVALID_IMAGE);
    return 0;
}

static int64_t listed(nvmlDevice_t device)
{
    nvmlProcessInfo_v2_t infos[8];
    unsigned count = 8;

    if (nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) != NVML_SUCCESS)
        return -2;
    for (unsigned i = 0; i < count; i++)
        if (infos[i].pid == (unsigned)getpid())
            return (int64_t)infos[i].usedGpuMemory;
    return -1;
}

static double used_mib(nvmlDevice_t device)
{
    nvmlMemory_t memory = {0};

    return nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS
               ? (double)memory.used / (double)MIB
               : -1;
}

static int two_figures(void)
{
    CUcontext first, second;
    nvmlDevice_t device;

    setenv("SIMGPU_PROFILE", "h200", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    double before = used_mib(device);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(used_mib(device) == before + 3.25 && listed(device) == -1);
    expect(cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
    expect(used_mib(device) == before + 3.25 + 523.5625);
    expect(listed(device) == 518 * (int64_t)MIB);
    expect(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
    expect(used_mib(device) == before + 3.25 + 2 * 523.5625);
    expect(listed(device) == 2 * 518 * (int64_t)MIB);
    expect(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
    expect(listed(device) == 518 * (int64_t)MIB);
    expect(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    expect(used_mib(device) == before + 3.25 && listed(device) == -1);
    return 0;
}

static void test_eager_loading_loads_libraries_into_all_contexts(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(eager), 0);
}

static void test_a_context_of_0_mib_has_no_overhead_at_all(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(without_overhead), 0);
}

static void test_an_h200_gives_more_than_nvml_counts_for_the_process(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(two_figures), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: children of a process that called cuInit could not. */
        cmocka_unit_test(test_eager_loading_loads_libraries_into_all_contexts),
        cmocka_unit_test(test_a_context_of_0_mib_has_no_overhead_at_all),
        cmocka_unit_test(test_an_h200_gives_more_than_nvml_counts_for_the_process),
        cmocka_unit_test_setup(test_streams_take_2_mib_for_about_every_four_of_them,
                               fixture_set_up),
        cmocka_unit_test_setup(test_the_memory_of_destroyed_streams_waits_for_later_ones,
                               fixture_set_up),
        cmocka_unit_test_setup(test_a_stream_that_does_not_fit_is_refused, fixture_set_up),
        cmocka_unit_test_setup(test_a_thousand_events_take_nothing, fixture_set_up),
        cmocka_unit_test_setup(test_the_peak_is_what_was_held_meanwhile, fixture_set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
