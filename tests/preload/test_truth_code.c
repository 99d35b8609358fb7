/* SPDX-License-Identifier: MIT
 *
 * Code: modules are refused where they do not fit, before the driver is asked if their variables
 * say so. Libraries are loaded by whatever uses them first, kernels bring their stacks along;
 * nobody can refuse that, so it is noticed, and allocations are refused until it fits again.
 */
#include "preload.h"

#include "figure.h"
#include "program.h"

#include <stdio.h>
#include <unistd.h>

#define CONTEXT       MIB(64)
#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* Images of 50 MiB, and some that do not fit into 96. */
#define IMAGE       "simgpu-module globals=50331648 code=2097152"
#define LARGE_IMAGE "simgpu-module code=104857600"
#define LARGE_PTX                                                                                  \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .global .align 4 .b8 large[104857600];\n"

/* ---- in the started program ---- */

static char untouched; /* its address: what an output was before */

static uint64_t overhead(void)
{
    return preload_device()->overhead_bytes;
}

static CUresult launch(CUfunction function)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult open_library(CUlibrary *library, const char *image)
{
    return cuLibraryLoadData(library, image, NULL, NULL, 0, NULL, NULL, 0);
}

/* GPU_LIMIT_MB=160 */
static int play_module(void)
{
    CUmodule first, second;
    CUdeviceptr rest;
    expect(role_begin() == 0);
    expect(cuModuleLoadData(&first, IMAGE) == CUDA_SUCCESS && figure_is(0, MIB(114)));
    expect(overhead() == MIB(114) && preload_free() == MIB(46));
    expect(cuModuleLoadDataEx(&second, "simgpu-module code=16777216", 0, NULL, NULL) ==
           CUDA_SUCCESS);
    expect(figure_is(0, MIB(130)));
    expect(cuMemAlloc_v2(&rest, MIB(32)) == OUT_OF_MEMORY);
    expect(cuModuleUnload(first) == CUDA_SUCCESS && figure_is(0, MIB(80)));
    expect(cuMemAlloc_v2(&rest, MIB(80)) == CUDA_SUCCESS && figure_is(0, MIB(160)));
    expect(cuModuleUnload(second) == CUDA_SUCCESS && figure_is(0, MIB(144)));
    return 0;
}

static int all_is_as_before(uint64_t denials)
{
    expect(figure_is(0, CONTEXT) && overhead() == CONTEXT && preload_free() == MIB(96));
    expect(preload_device()->denials == denials);
    return 0;
}

/* GPU_LIMIT_MB=160 */
static int play_module_too_large(void)
{
    CUmodule module = (CUmodule)&untouched;
    expect(role_begin() == 0);
    simgpu_process_peak(0);
    expect(cuModuleLoadData(&module, LARGE_IMAGE) == OUT_OF_MEMORY);
    expect(cuModuleLoadDataEx(&module, LARGE_IMAGE, 0, NULL, NULL) == OUT_OF_MEMORY);
    expect(cuModuleLoadFatBinary(&module, LARGE_IMAGE) == OUT_OF_MEMORY);
    expect(module == (CUmodule)&untouched && all_is_as_before(3) == 0);
    expect(simgpu_process_peak(0) == CONTEXT + MIB(100)); /* they were there */
    uint64_t calls = simgpu_calls("cuModuleLoadData");
    expect(cuModuleLoadData(&module, LARGE_PTX) == OUT_OF_MEMORY);
    expect(cuModuleLoadDataEx(&module, LARGE_PTX, 0, NULL, NULL) == OUT_OF_MEMORY);
    expect(simgpu_calls("cuModuleLoadData") == calls);
    expect(module == (CUmodule)&untouched && all_is_as_before(5) == 0);
    expect(simgpu_process_peak(0) == CONTEXT); /* this one never */
    return 0;
}

/* GPU_LIMIT_MB=160, CUDA_MODULE_LOADING=EAGER */
static int play_eager(void)
{
    CUlibrary library = (CUlibrary)&untouched;
    expect(role_begin() == 0);
    simgpu_process_peak(0);
    expect(open_library(&library, LARGE_PTX) == OUT_OF_MEMORY);
    expect(simgpu_process_peak(0) == CONTEXT && simgpu_calls("cuLibraryLoadData") == 0);
    expect(open_library(&library, LARGE_IMAGE) == OUT_OF_MEMORY);
    expect(library == (CUlibrary)&untouched && all_is_as_before(2) == 0);
    expect(open_library(&library, IMAGE) == CUDA_SUCCESS && figure_is(0, MIB(114)));
    expect(cuLibraryUnload(library) == CUDA_SUCCESS && all_is_as_before(2) == 0);
    return 0;
}

/* GPU_LIMIT_MB=1024 */
static int play_first_use(void)
{
    CUlibrary library;
    CUdeviceptr global;
    size_t bytes;
    expect(role_begin() == 0);
    /* Twice: the second has the first one's handle, as likely as not. */
    for (unsigned round = 0; round < 2; round++) {
        expect(open_library(&library, IMAGE) == CUDA_SUCCESS && figure_is(0, CONTEXT));
        for (unsigned i = 0; i < 10; i++) /* looks in vain, and for a while there is no other */
            expect(cuCtxSynchronize() == CUDA_SUCCESS && usleep(1100) == 0);
        expect(cuLibraryGetGlobal(&global, &bytes, library, "globals") == CUDA_SUCCESS);
        expect(figure_is(0, MIB(114)));
        expect(cuLibraryUnload(library) == CUDA_SUCCESS && figure_is(0, CONTEXT));
    }
    return 0;
}

static int play_first_use_of_kernel(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    expect(role_begin() == 0 && open_library(&library, IMAGE) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT));
    expect(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS && figure_is(0, MIB(114)));
    return 0;
}

static int play_launch(void)
{
    CUlibrary first, second;
    CUkernel kernel;
    CUdeviceptr piece;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&piece, MIB(2)) == CUDA_SUCCESS);
    expect(open_library(&first, IMAGE) == CUDA_SUCCESS);
    expect(open_library(&second, IMAGE) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, first, "kernel") == CUDA_SUCCESS);
    expect(launch((CUfunction)kernel) == CUDA_SUCCESS);
    expect(figure_of(0) == MIB(116) && overhead() == CONTEXT); /* nobody has told us */
    expect(cuCtxSynchronize() == CUDA_SUCCESS && figure_is(0, MIB(116)));
    expect(cuLibraryGetKernel(&kernel, second, "kernel") == CUDA_SUCCESS);
    expect(launch((CUfunction)kernel) == CUDA_SUCCESS);
    usleep(110000);
    expect(cuMemAlloc_v2(&piece, MIB(2)) == CUDA_SUCCESS && figure_is(0, MIB(168)));
    return 0;
}

/* Each of them refused, and the driver not asked. */
static int nothing_more_is_given(void)
{
    CUcontext context;
    CUdeviceptr none;
    CUmodule module;
    CUstream stream;
    expect(preload_free() == 0);
    expect(cuMemAlloc_v2(&none, 1) == OUT_OF_MEMORY);
    expect(cuMemAllocAsync(&none, 1, NULL) == OUT_OF_MEMORY);
    expect(cuCtxCreate_v2(&context, 0, 0) == OUT_OF_MEMORY);
    expect(cuModuleLoadData(&module, "simgpu-module code=1") == OUT_OF_MEMORY);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == OUT_OF_MEMORY);
    expect(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192) == OUT_OF_MEMORY);
    return 0;
}

/* GPU_LIMIT_MB=1024. The kernel takes 792 MiB for its stacks. */
static int play_local(void)
{
    CUdeviceptr pieces[3];
    CUfunction function;
    CUmodule module;
    expect(role_begin() == 0);
    for (unsigned i = 0; i < 3; i++)
        expect(cuMemAlloc_v2(&pieces[i], MIB(100)) == CUDA_SUCCESS);
    expect(cuModuleLoadData(&module, "simgpu-module local=4096") == CUDA_SUCCESS);
    expect(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    usleep(110000); /* that has looked, in vain */
    expect(launch(function) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    expect(figure_of(0) == MIB(64 + 300 + 792));
    expect(preload_device()->charged_bytes == figure_of(0) && nothing_more_is_given() == 0);
    expect(cuMemFree_v2(pieces[0]) == CUDA_SUCCESS && nothing_more_is_given() == 0);
    expect(preload_device()->charged_bytes == figure_of(0));
    expect(cuMemFree_v2(pieces[1]) == CUDA_SUCCESS && figure_is(0, MIB(64 + 100 + 792)));
    expect(cuMemAlloc_v2(&pieces[0], MIB(68)) == CUDA_SUCCESS && figure_is(0, MIB(1024)));
    expect(cuMemAlloc_v2(&pieces[1], 1) == OUT_OF_MEMORY);
    return 0;
}

static const struct role roles[] = {{"module", play_module},
                                    {"module too large", play_module_too_large},
                                    {"eager", play_eager},
                                    {"first use", play_first_use},
                                    {"first use of kernel", play_first_use_of_kernel},
                                    {"launch", play_launch},
                                    {"local", play_local},
                                    {0}};

/* ---- in the test ---- */

static void play(const char *role, const char *limit)
{
    static struct program program;
    program_play(&program, role, PROGRAM_LIST(limit));
    program_assert_ok(&program);
}

static void test_modules_are_charged_until_they_are_unloaded(void **state)
{
    (void)state;
    play("module", "GPU_LIMIT_MB=160");
}

static void test_a_module_that_does_not_fit_is_unloaded_and_its_variables_refused(void **state)
{
    (void)state;
    play("module too large", "GPU_LIMIT_MB=160");
}

static void test_an_eager_library_is_refused_like_a_module(void **state)
{
    static struct program program;
    (void)state;
    program_play(&program, "eager", PROGRAM_LIST("GPU_LIMIT_MB=160", "CUDA_MODULE_LOADING=EAGER"));
    program_assert_ok(&program);
}

static void test_a_lazy_library_is_charged_when_it_is_first_used(void **state)
{
    (void)state;
    play("first use", "GPU_LIMIT_MB=1024");
    play("first use of kernel", "GPU_LIMIT_MB=1024");
}

static void test_what_a_launch_loads_is_noticed_afterwards(void **state)
{
    (void)state;
    play("launch", "GPU_LIMIT_MB=1024");
}

static void test_over_the_limit_by_a_kernel_nothing_is_given_until_enough_is_freed(void **state)
{
    (void)state;
    play("local", "GPU_LIMIT_MB=1024");
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules_are_charged_until_they_are_unloaded),
        cmocka_unit_test(test_a_module_that_does_not_fit_is_unloaded_and_its_variables_refused),
        cmocka_unit_test(test_an_eager_library_is_refused_like_a_module),
        cmocka_unit_test(test_a_lazy_library_is_charged_when_it_is_first_used),
        cmocka_unit_test(test_what_a_launch_loads_is_noticed_afterwards),
        cmocka_unit_test(test_over_the_limit_by_a_kernel_nothing_is_given_until_enough_is_freed),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
