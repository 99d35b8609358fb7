// SPDX-License-Identifier: MIT
//
// What the simulated libcuda.so.1 exports, and what cuGetProcAddress answers. Needs no cuInit.

#include "fixture.h"

#include <dlfcn.h>
#include <string.h>

static void *ask(const char *name, int version, cuuint64_t flags, int expected)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
    void *address = &status;

    assert_ok(cuGetProcAddress_v2(name, &address, version, flags, &status));
    assert_int_equal(status, expected);
    return address;
}

static void test_every_hooked_function_is_exported(void **state)
{
    static const char *const hooks[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) #_symbol,
#include "gpulimit/tbl/hooks.def"
    };

    (void)state;
    assert_non_null(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL)); /* some are its own */
    for (unsigned i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
        if (dlsym(RTLD_DEFAULT, hooks[i]) == NULL)
            fail_msg("%s is missing", hooks[i]);
    }
}

static void test_each_symbol_is_found_under_its_base_name_and_version(void **state)
{
    static const struct {
        const char *symbol, *base;
        int version;
        cuuint64_t flags;
    } rows[] = {
#define SYMBOL(_symbol, _base, _version, _per_thread) {#_symbol, #_base, _version, 2 * _per_thread},
#include "symbols.def"
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *exported = dlsym(RTLD_DEFAULT, rows[i].symbol);

        assert_non_null(exported);
        assert_ptr_equal(ask(rows[i].base, rows[i].version, rows[i].flags, 0), exported);
        if (strcmp(rows[i].symbol, rows[i].base) != 0)
            assert_null(ask(rows[i].symbol, 13000, 0, 1)); /* decorated names are unknown */
    }
}

static void test_the_newest_version_not_above_the_one_asked_for_is_given(void **state)
{
    (void)state;
    assert_ptr_equal(ask("cuMemAlloc", 2000, 0, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc"));
    assert_ptr_equal(ask("cuMemAlloc", 3010, 0, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc"));
    assert_ptr_equal(ask("cuMemAlloc", 3020, 0, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_ptr_equal(ask("cuMemAlloc", 99000, 0, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_ptr_equal(ask("cuMemAlloc", -1, 0, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_ptr_equal(ask("cuGetProcAddress", 11030, 0, 0), dlsym(RTLD_DEFAULT, "cuGetProcAddress"));
    assert_ptr_equal(ask("cuGetProcAddress", 12000, 0, 0),
                     dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
    assert_null(ask("cuMemAllocAsync", 11010, 0, 2));
}

static void test_flags_choose_the_per_thread_variant(void **state)
{
    void *legacy = dlsym(RTLD_DEFAULT, "cuMemAllocAsync");
    void *per_thread = dlsym(RTLD_DEFAULT, "cuMemAllocAsync_ptsz"), *address = NULL;

    (void)state;
    assert_ptr_equal(ask("cuMemAllocAsync", 11020, 1, 0), legacy);
    assert_ptr_equal(ask("cuMemAllocAsync", 11020, 2, 0), per_thread);
    assert_ptr_equal(ask("cuMemAllocAsync", 11020, 3, 0), per_thread);
    assert_ptr_equal(ask("cuMemFree", 3020, 2, 0), dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
    assert_null(ask("cuStreamQuery", 4000, 2, 2)); /* no falling back to the legacy one */
    assert_int_equal(cuGetProcAddress_v2("cuMemFree", &address, 3020, 4, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}

static void test_unknown_names_answer_by_the_form_asked(void **state)
{
    void *address = state;

    assert_null(ask("", 0, 0, 1));
    assert_null(ask("cuNoSuchThing", 13000, 0, 1));
    assert_ok(cuGetProcAddress_v2("cuMemFree", &address, 3020, 0, NULL));
    assert_ptr_equal(address, dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
    address = state;
    assert_int_equal(cuGetProcAddress("cuNoSuchThing", &address, 13000, 0), CUDA_ERROR_NOT_FOUND);
    assert_ptr_equal(address, state);
    assert_ok(cuGetProcAddress("cuMemFree", &address, 3020, 0));
    assert_ptr_equal(address, dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
}

static void test_errors_have_names(void **state)
{
    const char *text = NULL;
    const void *table = state;
    int version;
    CUuuid uuid = {{0}};

    assert_ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_ok(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    assert_int_equal(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
    assert_ok(cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
    assert_int_equal(cuGetExportTable(&table, &uuid), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(table, state);
}

static void test_calls_are_counted_and_can_be_made_to_fail(void **state)
{
    uint64_t before = simgpu_calls("cuMemAlloc_v2");
    CUdeviceptr at = 7;

    (void)state;
    assert_int_equal(cuMemAlloc_v2(&at, 100), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(simgpu_calls("cuMemAlloc_v2"), before + 1);
    assert_int_equal(simgpu_calls("cuNoSuchThing"), 0);
    simgpu_fail_next("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
    at = 7;
    assert_int_equal(cuMemAlloc_v2(&at, 100), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(at, 0);
    assert_int_equal(cuMemAlloc_v2(&at, 100), CUDA_ERROR_NOT_INITIALIZED);
    simgpu_fail_next("cuDriverGetVersion", CUDA_ERROR_UNKNOWN);
    simgpu_fail_next("cuDriverGetVersion", 0);
    int version;
    assert_ok(cuDriverGetVersion(&version));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_hooked_function_is_exported),
        cmocka_unit_test(test_each_symbol_is_found_under_its_base_name_and_version),
        cmocka_unit_test(test_the_newest_version_not_above_the_one_asked_for_is_given),
        cmocka_unit_test(test_flags_choose_the_per_thread_variant),
        cmocka_unit_test(test_unknown_names_answer_by_the_form_asked),
        cmocka_unit_test(test_errors_have_names),
        cmocka_unit_test(test_calls_are_counted_and_can_be_made_to_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
