/* SPDX-License-Identifier: MIT
 *
 * What every row of hooks.def gets: the hook is found by each of the ways to a function of the
 * driver's or NVML's, it is the same one each time, and before cuInit or nvmlInit it answers as
 * that library. The cases come from
 * the table, so a new row is tested as soon as it is there. What those hooks do that allocate is in
 * test_allocators.c. This program never calls cuInit with success.
 */
#include "preload.h"

#include "bare.h"
#include "hook.h"

#include <dlfcn.h>
#include <string.h>

/* How cuGetProcAddress knows each symbol. */
static const struct request {
    const char *symbol, *base;
    int version;
    cuuint64_t flags;
} requests[] = {
#define SYMBOL(_symbol, _base, _version, _per_thread)                                              \
    {#_symbol, #_base, _version,                                                                   \
     (_per_thread) ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT},
#include "symbols.def"
};

static const struct request *request_of(const struct hook *hook)
{
    for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        if (strcmp(requests[i].symbol, hook->symbol) == 0)
            return &requests[i];
    }
    fail_msg("%s is no row of symbols.def", hook->symbol);
    return NULL;
}

/* A handle of the library whose function it stands for. */
static void *home_of(const struct hook *hook)
{
    return hook_is_nvml(hook) ? bare_nvml() : bare_driver();
}

/* The library's own function, and of this name. */
static void assert_is_hook(const void *address, const struct hook *hook)
{
    Dl_info info;
    assert_non_null(address);
    assert_true(bare_lies_in(address, "libgpulimit.so"));
    assert_int_not_equal(dladdr(address, &info), 0);
    assert_string_equal(info.dli_sname, hook->symbol);
    assert_ptr_equal(info.dli_saddr, address);
    assert_ptr_equal(address, (void *)hook->linked); /* one address, whichever the way */
}

static void test_handle(void **state)
{
    const struct hook *hook = *state;
    assert_is_hook(dlsym(home_of(hook), hook->symbol), hook);
    assert_true(bare_lies_in(bare_dlsym(home_of(hook), hook->symbol),
                             hook_is_nvml(hook) ? "libnvidia-ml.so.1" : "libcuda.so.1"));
}

static void test_default(void **state)
{
    const struct hook *hook = *state;
    assert_is_hook(dlsym(RTLD_DEFAULT, hook->symbol), hook);
}

static void test_program_handle(void **state)
{
    const struct hook *hook = *state;
    assert_is_hook(dlsym(dlopen(NULL, RTLD_LAZY), hook->symbol), hook);
}

static void test_next(void **state)
{
    const struct hook *hook = *state;
    assert_is_hook(dlsym(RTLD_NEXT, hook->symbol), hook);
}

static void test_linked(void **state)
{
    const struct hook *hook = *state;
    assert_is_hook((void *)hook->linked, hook);
}

static void test_get_proc_address(void **state)
{
    const struct hook *hook = *state;
    const struct request *request = request_of(hook);
    void *address = NULL;
    assert_ok(cuGetProcAddress(request->base, &address, request->version, request->flags));
    assert_is_hook(address, hook);
}

static void test_get_proc_address_v2(void **state)
{
    const struct hook *hook = *state;
    const struct request *request = request_of(hook);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *address = NULL;
    assert_ok(
        cuGetProcAddress_v2(request->base, &address, request->version, request->flags, &found));
    assert_int_equal(found, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_is_hook(address, hook);
}

/* Neither library has versions of its own, so the loader finds none of its functions by one. */
static void test_version(void **state)
{
    static const char *const versions[] = {"GLIBC_2.2.5", "CUDA_13"};
    const struct hook *hook = *state;
    void *home = home_of(hook);
    for (unsigned i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        assert_ptr_equal(dlvsym(home, hook->symbol, versions[i]),
                         bare_dlvsym(home, hook->symbol, versions[i]));
        assert_ptr_equal(dlvsym(RTLD_DEFAULT, hook->symbol, versions[i]),
                         bare_dlvsym(RTLD_DEFAULT, hook->symbol, versions[i]));
    }
}

static void test_before_init(void **state)
{
    const struct hook *hook = *state;
    struct hook_outputs ours, drivers;
    hook_function function;
    *(void **)&function = bare_dlsym(home_of(hook), hook->symbol);
    uint64_t calls = simgpu_calls(hook->symbol);
    int result = hook_call(hook, hook->linked, &ours);
    if (!hook_is_nvml(hook))
        assert_int_equal(simgpu_calls(hook->symbol), calls + 1);
    assert_int_equal(result, hook_call(hook, function, &drivers));
    assert_memory_equal(&ours, &drivers, sizeof ours);
    if (hook->role != STARTS && hook->role != RESOLVES)
        assert_int_equal(result, hook_is_nvml(hook) ? (int)NVML_ERROR_UNINITIALIZED
                                                    : (int)CUDA_ERROR_NOT_INITIALIZED);
}

#define CASE(_name, _test, _symbol)                                                                \
    {                                                                                              \
        _name, _test, NULL, NULL, &hooks[HOOK_##_symbol]                                           \
    }

static const struct CMUnitTest tests[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    CASE(#_symbol " is found by dlsym on a handle of the driver", test_handle, _symbol),           \
        CASE(#_symbol " is found by dlsym with RTLD_DEFAULT", test_default, _symbol),              \
        CASE(#_symbol " is found by dlsym on a handle of the program", test_program_handle,        \
             _symbol),                                                                             \
        CASE(#_symbol " is found by dlsym with RTLD_NEXT", test_next, _symbol),                    \
        CASE(#_symbol " is what a program is linked with", test_linked, _symbol),                  \
        CASE(#_symbol " is found by cuGetProcAddress", test_get_proc_address, _symbol),            \
        CASE(#_symbol " is found by cuGetProcAddress_v2", test_get_proc_address_v2, _symbol),      \
        CASE(#_symbol " of a version is what the loader makes of it", test_version, _symbol),      \
        CASE(#_symbol " before cuInit answers as its library does", test_before_init, _symbol),
#include "gpulimit/tbl/hooks.def"
};

/* NVML's functions are not the driver's to hand out. */
static bool is_of_use(const struct CMUnitTest *test)
{
    return !hook_is_nvml(test->initial_state) || (test->test_func != test_get_proc_address &&
                                                  test->test_func != test_get_proc_address_v2);
}

int main(void)
{
    static struct CMUnitTest used[sizeof tests / sizeof tests[0]];
    size_t count = 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (is_of_use(&tests[i]))
            used[count++] = tests[i];
    }
    return _cmocka_run_group_tests("hooks", used, count, bare_find_loader, NULL);
}
