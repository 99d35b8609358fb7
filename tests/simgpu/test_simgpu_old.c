// SPDX-License-Identifier: MIT
//
// The variant of CUDA 11.0, given by its path as the first argument: it lacks what came later and
// works otherwise.

#include "fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void test_what_came_after_11_0_is_missing(void **state)
{
    static const struct {
        const char *symbol;
        int version;
    } rows[] = {
#define SYMBOL(_symbol, _base, _version, _per_thread) {#_symbol, _version},
#include "symbols.def"
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(dlsym(library, rows[i].symbol) != NULL, rows[i].version <= 11000);
    assert_null(dlsym(library, "cuGetProcAddress"));
    assert_null(dlsym(library, "cuMemAllocAsync"));
    assert_non_null(dlsym(library, "cuMemRetainAllocationHandle"));
    assert_non_null(dlsym(library, "simgpu_calls"));
}

static void test_it_says_that_it_is_11_0(void **state)
{
    CUresult (*get_version)(int *);
    int version = 0;

    (void)state;
    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    assert_ok(get_version(&version));
    assert_int_equal(version, 11000);
}

static void test_it_allocates(void **state)
{
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    uint64_t (*process_used)(int);
    CUcontext context;
    CUdeviceptr at;

    (void)state;
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&set = dlsym(library, "cuCtxSetCurrent");
    *(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
    *(void **)&process_used = dlsym(library, "simgpu_process_used");
    assert_ok(init(0));
    assert_ok(retain(&context, 0));
    assert_ok(set(context));
    assert_ok(alloc(&at, 3 * MIB));
    assert_int_equal(process_used(0), 68 * MIB);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_came_after_11_0_is_missing),
        cmocka_unit_test(test_it_says_that_it_is_11_0),
        cmocka_unit_test(test_it_allocates),
    };

    setenv("SIMGPU_CONTEXT_MB", "64", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", count > 1 ? dlerror() : "usage: test_simgpu_old LIBCUDA");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
