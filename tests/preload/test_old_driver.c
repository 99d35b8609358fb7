/* SPDX-License-Identifier: MIT
 *
 * Over a driver of CUDA 11.0, which lacks what came later (stream-ordered memory, cuGetProcAddress,
 * newer versions of functions): programs are told so as the bare driver would, nothing crashes, and
 * what the driver has is limited as ever. At run time libcuda.so.1 is the old one.
 */
#include "preload.h"

#include "bare.h"
#include "hook.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *driver;

static bool driver_has(const struct hook *hook)
{
    bool has = bare_dlsym(driver, hook->symbol) != NULL;
    (void)dlerror(); /* that it has not */
    return has;
}

static void assert_absent(void *address, const char *symbol)
{
    char expected[128];
    const char *said = dlerror();
    assert_null(address);
    assert_non_null(said);
    snprintf(expected, sizeof expected, "undefined symbol: %s", symbol);
    assert_non_null(strstr(said, expected));
}

static void test_it_is_the_old_driver(void **state)
{
    int version;
    unsigned lacking = 0;
    (void)state;
    assert_ok(cuDriverGetVersion(&version));
    assert_int_equal(version, 11000);
    for (unsigned i = 0; i < HOOKS; i++)
        lacking += !driver_has(&hooks[i]);
    assert_true(lacking > 10 && lacking < HOOKS - 20);
}

static void test_look_up(void **state)
{
    const struct hook *hook = *state;
    if (driver_has(hook)) {
        assert_ptr_equal(dlsym(driver, hook->symbol), (void *)hook->linked);
        assert_ptr_equal(dlsym(RTLD_DEFAULT, hook->symbol), (void *)hook->linked);
        assert_true(bare_lies_in((void *)hook->linked, "libgpulimit.so"));
        assert_null(dlerror());
    } else {
        assert_absent(dlsym(driver, hook->symbol), hook->symbol);
        assert_absent(dlsym(RTLD_DEFAULT, hook->symbol), hook->symbol);
        assert_absent(dlsym(dlopen(NULL, RTLD_LAZY), hook->symbol), hook->symbol);
        assert_absent(dlvsym(driver, hook->symbol, "CUDA_13"), hook->symbol);
    }
}

/* A program that is linked with newer functions: on the bare driver it would not start, with us it
 * does, and has to live with an error. */
static void test_call(void **state)
{
    const struct hook *hook = *state;
    struct hook_outputs out, before;
    memset(&before, 0x5a, sizeof before);
    if (driver_has(hook))
        return;
    assert_int_equal(hook_call(hook, hook->linked, &out), CUDA_ERROR_NOT_FOUND);
    assert_memory_equal(&out, &before, sizeof out);
}

static void test_linear_memory_is_limited(void **state)
{
    CUdeviceptr first, second = 7;
    (void)state;
    assert_ok(cuMemAlloc_v2(&first, MIB(600)));
    assert_int_equal(cuMemAlloc_v2(&second, MIB(600)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(second, 0);
    assert_int_equal(preload_free(), MIB(424));
    assert_ok(cuMemAllocManaged(&second, MIB(424), CU_MEM_ATTACH_GLOBAL));
    assert_ok(cuMemFree_v2(second));
    assert_ok(cuMemFree_v2(first));
}

static void test_vmm_is_limited(void **state)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle, again = 7;
    CUdeviceptr address;
    (void)state;
    assert_ok(cuMemCreate(&handle, MIB(600), &prop, 0));
    assert_int_equal(cuMemCreate(&again, MIB(600), &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(again, 7);
    assert_ok(cuMemAddressReserve(&address, MIB(600), 0, 0, 0));
    assert_ok(cuMemMap(address, MIB(600), 0, handle, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(preload_free(), MIB(424)); /* the mapping keeps it */
    assert_ok(cuMemUnmap(address, MIB(600)));
    assert_ok(cuMemAddressFree(address, MIB(600)));
}

static void test_memory_goes_with_its_context(void **state)
{
    CUcontext context;
    CUdeviceptr address;
    (void)state;
    assert_ok(cuCtxCreate_v2(&context, 0, 0));
    assert_ok(cuMemAlloc_v2(&address, MIB(600)));
    assert_int_equal(preload_free(), MIB(424));
    assert_ok(cuCtxDestroy_v2(context));
}

static void test_what_programs_see_is_the_limit(void **state)
{
    size_t free, total, device_total;
    (void)state;
    assert_ok(cuMemGetInfo_v2(&free, &total));
    assert_ok(cuDeviceTotalMem_v2(&device_total, 0));
    assert_int_equal(total, MIB(1024));
    assert_int_equal(device_total, MIB(1024));
}

static int set_up(void **state)
{
    driver = bare_driver();
    return bare_find_loader(state) == 0 ? preload_set_up(state) : -1;
}

#define CASE(_name, _test, _symbol)                                                                \
    {                                                                                              \
        _name, _test, NULL, NULL, &hooks[HOOK_##_symbol]                                           \
    }

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_it_is_the_old_driver),
#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    CASE(#_symbol " is found where the old driver has it", test_look_up, _symbol),                 \
        CASE(#_symbol " answers an error where the old driver lacks it", test_call, _symbol),
#include "gpulimit/tbl/hooks.def"
    cmocka_unit_test_teardown(test_linear_memory_is_limited, preload_assert_clean),
    cmocka_unit_test_teardown(test_vmm_is_limited, preload_assert_clean),
    cmocka_unit_test_teardown(test_memory_goes_with_its_context, preload_assert_clean),
    cmocka_unit_test(test_what_programs_see_is_the_limit),
};

int main(void)
{
    static struct CMUnitTest of_driver[sizeof tests / sizeof tests[0]];
    size_t count = 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (!tests[i].initial_state || !hook_is_nvml(tests[i].initial_state))
            of_driver[count++] = tests[i];
    }
    return _cmocka_run_group_tests("old_driver", of_driver, count, set_up, NULL);
}
