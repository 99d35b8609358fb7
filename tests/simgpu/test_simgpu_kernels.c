// SPDX-License-Identifier: MIT
//
// Code of the simulated GPU that is loaded when it is first wanted, and what kernels take when they
// first run.

#include "fixture.h"

#define LIBRARY "simgpu-module globals=50331648 code=2097152"

static CUcontext open_context(void)
{
    CUcontext context = NULL;

    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    fixture_took();
    return context;
}

static CUlibrary open_library(const char *image)
{
    CUlibrary library = NULL;

    assert_ok(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    return library;
}

static CUfunction load_kernel(const char *image, CUmodule *module)
{
    CUfunction function = NULL;

    assert_ok(cuModuleLoadData(module, image));
    assert_ok(cuModuleGetFunction(&function, *module, "kernel"));
    return function;
}

static CUresult launch(CUfunction function)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* ---- libraries ---- */

static void test_a_library_is_loaded_when_a_function_of_it_is_wanted(void **state)
{
    CUlibrary library = open_library(LIBRARY);
    CUfunction function, again;
    CUkernel kernel, same;

    (void)state;
    assert_ok(cuLibraryGetKernel(&kernel, library, "kernel"));
    assert_ok(cuLibraryGetKernel(&same, library, "kernel"));
    assert_ptr_equal(kernel, same);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuKernelGetFunction(&function, kernel));
    assert_int_equal(fixture_took(), 50);
    assert_ok(cuKernelGetFunction(&again, kernel));
    assert_ptr_equal(function, again);
    assert_ok(launch(function));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuLibraryUnload(library));
    assert_int_equal(fixture_took(), -50);
    assert_int_equal(launch(function), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
}

static void test_a_library_is_loaded_by_its_first_launch_in_each_context(void **state)
{
    CUlibrary library = open_library(LIBRARY);
    CUcontext context;
    CUkernel kernel;

    (void)state;
    assert_ok(cuLibraryGetKernel(&kernel, library, "kernel"));
    assert_ok(launch((CUfunction)kernel));
    assert_int_equal(fixture_took(), 50);
    context = open_context();
    assert_ok(cuFuncLoad((CUfunction)kernel));
    assert_int_equal(fixture_took(), 50);
    assert_ok(launch((CUfunction)kernel));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 50);
    assert_ok(cuLibraryUnload(library));
    assert_int_equal(fixture_took(), -50);
}

static void test_a_launch_whose_library_does_not_fit_is_refused(void **state)
{
    CUlibrary library = open_library(LIBRARY);
    CUdeviceptr rest;
    CUkernel kernel;

    (void)state;
    assert_ok(cuLibraryGetKernel(&kernel, library, "kernel"));
    assert_ok(cuMemAlloc_v2(&rest, 8100 * MIB));
    fixture_took();
    assert_int_equal(launch((CUfunction)kernel), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuMemFree_v2(rest));
    assert_ok(cuLibraryUnload(library));
    fixture_took();
}

/* ---- kernels ---- */

/* The H200 gave one block less for an array of 8000 bytes. */
static void test_a_kernels_local_memory_is_taken_by_its_first_launch(void **state)
{
    CUcontext context = open_context();
    CUfunction large, small;
    CUmodule first, second;

    (void)state;
    large = load_kernel("simgpu-module local=8000", &first);
    small = load_kernel("simgpu-module local=5000", &second);
    assert_int_equal(fixture_took(), 0);
    assert_ok(launch(large));
    assert_int_equal(fixture_took(), 1800);
    assert_ok(launch(large));
    assert_ok(launch(small));
    assert_ok(cuModuleUnload(first));
    assert_ok(cuModuleUnload(second));
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    assert_int_equal(fixture_took(), 3960 - 1800);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 3960);
}

static void test_a_launch_whose_local_memory_does_not_fit_is_refused(void **state)
{
    CUmodule module;
    CUfunction function = load_kernel("simgpu-module local=65536", &module);

    (void)state;
    assert_int_equal(launch(function), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuModuleUnload(module));
}

static void test_the_heap_is_taken_by_the_first_launch_that_uses_it(void **state)
{
    CUcontext context = open_context();
    CUmodule module, again, plain;
    CUfunction function;

    (void)state;
    assert_ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1024 * MIB));
    assert_ok(launch(load_kernel("simgpu-module", &plain)));
    assert_int_equal(fixture_took(), 0);
    function = load_kernel("simgpu-module heap", &module);
    assert_int_equal(fixture_took(), 138);
    assert_ok(launch(function));
    assert_int_equal(fixture_took(), 1026);
    assert_ok(launch(function));
    assert_ok(launch(load_kernel("simgpu-module heap", &again)));
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, MIB), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 138 - 1026);
}

static void test_printf_takes_memory_once_in_a_context(void **state)
{
    CUcontext context = open_context();
    CUmodule first, second;
    CUfunction function;

    (void)state;
    function = load_kernel("simgpu-module printf", &first);
    assert_int_equal(fixture_took(), 62);
    assert_ok(launch(function));
    load_kernel("simgpu-module printf", &second);
    assert_ok(cuModuleUnload(first));
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, MIB), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -64 - 62);
    context = open_context();
    assert_ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8650752 + 64 * MIB));
    function = load_kernel("simgpu-module printf", &first);
    assert_int_equal(fixture_took(), 62);
    assert_ok(launch(function));
    assert_int_equal(fixture_took(), 64);
    assert_ok(cuCtxDestroy_v2(context));
    fixture_took();
}

static void test_kernels_of_ptx_have_their_names_and_variables(void **state)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".extern .func (.param .b32 r) vprintf (.param .b64 f);\n"
                              ".visible .entry plain()\n{\n ld.local.u32 %r1, [p];\n ret;\n}\n"
                              ".visible .entry deep(.param .u64 p)\n{\n"
                              ".local .align 4 .b8 depot[8000];\n ret;\n}\n";
    CUcontext context = open_context();
    CUfunction function = (CUfunction)state;
    CUmodule module;

    assert_ok(cuModuleLoadData(&module, ptx));
    assert_int_equal(fixture_took(), 62);
    assert_int_equal(cuModuleGetFunction(&function, module, "dee"), CUDA_ERROR_NOT_FOUND);
    assert_ptr_equal(function, state);
    assert_ok(cuModuleGetFunction(&function, module, "plain"));
    assert_ok(launch(function));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuModuleGetFunction(&function, module, "deep"));
    assert_ok(launch(function));
    assert_int_equal(fixture_took(), 1800);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(launch(function), CUDA_ERROR_INVALID_HANDLE);
    fixture_took();
}

static void test_launches_are_checked(void **state)
{
    CUmodule module;
    CUfunction function = load_kernel("simgpu-module local=8000", &module);
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    CUcontext context = open_context();
    CUstream stream;

    (void)state;
    assert_int_equal(launch(function), CUDA_ERROR_INVALID_HANDLE); /* of another context */
    assert_ok(cuCtxDestroy_v2(context));
    fixture_took();
    assert_int_equal(launch(NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(launch((CUfunction)module), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    config.blockDimX = 1025;
    assert_int_equal(cuLaunchKernelEx(&config, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLaunchKernelEx(NULL, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuStreamCreate(&stream, 0));
    config = (CUlaunchConfig){1, 1, 1, 1024, 1, 1, 0, stream, NULL, 0};
    assert_ok(cuLaunchKernelEx(&config, function, NULL, NULL));
    assert_int_equal(fixture_took(), 1800);
    assert_ok(cuStreamDestroy_v2(stream));
    assert_ok(cuModuleUnload(module));
}

static void test_a_captured_launch_loads_its_code_and_takes_no_more(void **state)
{
    CUlibrary library = open_library(LIBRARY " local=20000");
    CUcontext context = open_context();
    CUkernel kernel;
    CUstream stream;
    CUgraph graph;

    (void)state;
    assert_ok(cuLibraryGetKernel(&kernel, library, "kernel"));
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_int_equal(fixture_took(), 50);
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuCtxDestroy_v2(context));
    assert_ok(cuLibraryUnload(library));
    fixture_took();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_library_is_loaded_when_a_function_of_it_is_wanted),
        cmocka_unit_test(test_a_library_is_loaded_by_its_first_launch_in_each_context),
        cmocka_unit_test(test_a_launch_whose_library_does_not_fit_is_refused),
        cmocka_unit_test(test_a_kernels_local_memory_is_taken_by_its_first_launch),
        cmocka_unit_test(test_a_launch_whose_local_memory_does_not_fit_is_refused),
        cmocka_unit_test(test_the_heap_is_taken_by_the_first_launch_that_uses_it),
        cmocka_unit_test(test_printf_takes_memory_once_in_a_context),
        cmocka_unit_test(test_kernels_of_ptx_have_their_names_and_variables),
        cmocka_unit_test(test_launches_are_checked),
        cmocka_unit_test(test_a_captured_launch_loads_its_code_and_takes_no_more),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
