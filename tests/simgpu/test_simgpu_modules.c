// SPDX-License-Identifier: MIT
//
// Modules and libraries of the simulated GPU.

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PTX(_globals)                                                                              \
    ".version 7.0\n.target sm_70\n.address_size 64\n" _globals                                     \
    ".visible .entry k(.param .u64 p)\n{\n ld.global.u32 %r1, [p];\n ret;\n}\n"

static const char large[] = PTX(".visible .global .align 4 .b8 big[268435456];\n");
static const char small[] = PTX(".visible .global .align 4 .u32 one[262144];\n"
                                ".const .f64 two = 0d0000000000000000;\n");

static void test_variables_take_memory_until_the_module_goes(void **state)
{
    CUmodule module, other;
    CUdeviceptr at, base;
    size_t bytes;

    (void)state;
    assert_ok(cuModuleLoadData(&module, large));
    assert_int_equal(fixture_took(), 256);
    assert_ok(cuModuleGetGlobal_v2(&at, &bytes, module, "big"));
    assert_int_equal(bytes, 256 * MIB);
    assert_ok(cuMemGetAddressRange_v2(&base, &bytes, at + 9));
    assert_int_equal(base, at);
    assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fixture_took(), -256);

    assert_ok(cuMemAlloc_v2(&at, 4096));
    assert_ok(cuModuleLoadDataEx(&module, small, 0, NULL, NULL));
    assert_int_equal(fixture_took(), 4); /* blocks of their own */
    assert_ok(cuModuleLoadFatBinary(&other, PTX(".global .b8 few[4096];\n")));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuModuleGetGlobal_v2(NULL, &bytes, module, "two"));
    assert_int_equal(bytes, 8);
    assert_ok(cuModuleGetGlobal_v2(NULL, &bytes, module, "one"));
    assert_int_equal(bytes, MIB);
    assert_ok(cuModuleUnload(module));
    assert_ok(cuModuleUnload(other));
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(fixture_took(), -4);
}

static void test_a_text_stands_for_a_module(void **state)
{
    CUmodule module;
    size_t bytes;

    (void)state;
    assert_ok(cuModuleLoadData(&module, "simgpu-module globals=268435456 code=5242880"));
    assert_int_equal(fixture_took(), 256 + 6);
    assert_ok(cuModuleGetGlobal_v2(NULL, &bytes, module, "globals"));
    assert_int_equal(bytes, 256 * MIB);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(fixture_took(), -(256 + 6));
}

static void test_other_images_cost_nothing(void **state)
{
    static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    CUmodule module;

    (void)state;
    assert_ok(cuModuleLoadData(&module, cubin));
    assert_ok(cuModuleUnload(module));
    assert_ok(cuModuleLoadData(&module, PTX("")));
    assert_ok(cuModuleUnload(module));
    assert_int_equal(fixture_took(), 0);
}

static void test_loading_answers_by_what_is_wrong(void **state)
{
    CUmodule module = (CUmodule)7;
    CUdeviceptr linear, at = 7;
    size_t bytes = 7;

    (void)state;
    assert_int_equal(cuModuleLoadData(&module, "garbage"), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuModuleLoadData(NULL, large), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    assert_ok(cuMemAlloc_v2(&linear, 8000 * MIB));
    assert_int_equal(cuModuleLoadData(&module, large), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(module, (CUmodule)7);
    assert_ok(cuMemFree_v2(linear));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuModuleLoadData(&module, small));
    assert_int_equal(cuModuleGetGlobal_v2(&at, &bytes, module, "none"), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(at, 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(cuModuleGetGlobal_v2(NULL, NULL, module, "one"), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(cuModuleUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
    fixture_took();
}

static void test_a_library_takes_memory_when_it_is_first_used(void **state)
{
    CUlibrary library, bad;
    CUmodule module, again;
    CUdeviceptr at;
    size_t bytes;
    CUmoduleLoadingMode mode;

    (void)state;
    assert_ok(cuModuleGetLoadingMode(&mode));
    assert_int_equal(mode, CU_MODULE_LAZY_LOADING);
    assert_ok(cuLibraryLoadData(&library, large, NULL, NULL, 0, NULL, NULL, 0));
    assert_int_equal(fixture_took(), 0);
    assert_ok(cuLibraryGetGlobal(&at, &bytes, library, "big"));
    assert_int_equal(fixture_took(), 256);
    assert_ok(cuLibraryGetModule(&module, library));
    assert_ok(cuLibraryGetModule(&again, library));
    assert_ptr_equal(module, again);
    assert_int_equal(fixture_took(), 0);
    assert_int_equal(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED); /* it is the library's */
    at = bytes = 7;
    assert_int_equal(cuLibraryGetGlobal(&at, &bytes, library, "none"), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(at, 7); /* unlike a module's */
    assert_ok(cuLibraryUnload(library));
    assert_int_equal(fixture_took(), -256);
    assert_ok(cuLibraryLoadData(&bad, "garbage", NULL, NULL, 0, NULL, NULL, 0));
    assert_int_equal(cuLibraryGetModule(&module, bad), CUDA_ERROR_INVALID_IMAGE);
    assert_ok(cuLibraryUnload(bad));
    assert_int_equal(cuLibraryUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void test_files_are_read(void **state)
{
    char path[] = "/tmp/simgpu-module-XXXXXX";
    int descriptor = mkstemp(path);
    CUlibrary library;
    CUmodule module;

    (void)state;
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, large, sizeof large - 1), sizeof large - 1);
    close(descriptor);
    assert_ok(cuModuleLoad(&module, path));
    assert_int_equal(fixture_took(), 256);
    assert_ok(cuModuleUnload(module));
    assert_ok(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    unlink(path);
    assert_ok(cuLibraryGetModule(&module, library));
    assert_ok(cuLibraryUnload(library));
    assert_int_equal(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_ERROR_FILE_NOT_FOUND);
    assert_int_equal(fixture_took(), -256);
}

static void test_modules_die_with_their_context(void **state)
{
    CUcontext context;
    CUlibrary library;
    CUmodule module;

    (void)state;
    assert_ok(cuLibraryLoadData(&library, large, NULL, NULL, 0, NULL, NULL, 0));
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    assert_ok(cuModuleLoadData(&module, large));
    assert_ok(cuLibraryGetModule(&module, library));
    assert_int_equal(fixture_took(), 64 + 512);
    assert_ok(cuCtxDestroy_v2(context));
    assert_int_equal(fixture_took(), -(64 + 512));
    assert_ok(cuLibraryUnload(library));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_take_memory_until_the_module_goes),
        cmocka_unit_test(test_a_text_stands_for_a_module),
        cmocka_unit_test(test_other_images_cost_nothing),
        cmocka_unit_test(test_loading_answers_by_what_is_wrong),
        cmocka_unit_test(test_a_library_takes_memory_when_it_is_first_used),
        cmocka_unit_test(test_files_are_read),
        cmocka_unit_test(test_modules_die_with_their_context),
    };

    return cmocka_run_group_tests(tests, fixture_set_up, NULL);
}
