/* SPDX-License-Identifier: MIT
 *
 * dlsym and dlvsym as their callers know them: the handle is honoured, a name that is not there is
 * not there, the error text is the loader's own, and everything but the hooks is as if the library
 * were not. This program is linked with neither library; half of it runs before they are loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bare.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 32 };

static const char *const hooks[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) #_symbol,
#include "gpulimit/tbl/hooks.def"
};
static const char *const symbols[] = {
#define SYMBOL(_symbol, _base, _version, _per_thread) #_symbol,
#include "symbols.def"
};

enum { HOOKS = sizeof hooks / sizeof hooks[0], SYMBOLS = sizeof symbols / sizeof symbols[0] };

static void *driver, *nvml;

/* The library whose function a name is. */
static void *home_of(const char *name)
{
    return strncmp(name, "nvml", 4) == 0 ? nvml : driver;
}

static bool is_hook(const char *name)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        if (strcmp(hooks[i], name) == 0)
            return true;
    }
    return false;
}

/* ---- without a driver ---- */

static void assert_absent(void *address, const char *name)
{
    char expected[128];
    const char *said = dlerror();
    assert_null(address);
    assert_non_null(said);
    snprintf(expected, sizeof expected, "undefined symbol: %s", name);
    assert_non_null(strstr(said, expected));
    assert_null(dlerror());
}

static void test_without_a_driver_no_hook_is_found(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOOKS; i++) {
        assert_absent(dlsym(RTLD_DEFAULT, hooks[i]), hooks[i]);
        assert_absent(dlsym(dlopen(NULL, RTLD_LAZY), hooks[i]), hooks[i]);
        assert_absent(dlvsym(RTLD_DEFAULT, hooks[i], "CUDA_13"), hooks[i]);
    }
}

static void test_looking_up_loads_neither_library(void **state)
{
    (void)state;
    (void)dlsym(RTLD_DEFAULT, "cuInit");
    (void)dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo");
    assert_null(bare_driver());
    assert_null(bare_nvml());
}

/* ---- with one ---- */

static pthread_barrier_t barrier;

static void *look_all_up(void *argument)
{
    void **found = argument;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < HOOKS; i++)
        found[i] = dlsym(home_of(hooks[i]), hooks[i]);
    return NULL;
}

/* Comes first after the driver: the library itself does not know it yet. */
static void test_threads_at_once_all_find_the_same(void **state)
{
    static void *found[THREADS][HOOKS];
    pthread_t threads[THREADS];
    (void)state;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_all_up, found[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < HOOKS; i++)
        assert_true(bare_lies_in(found[0][i], "libgpulimit.so"));
    for (unsigned i = 1; i < THREADS; i++)
        assert_memory_equal(found[i], found[0], sizeof found[0]);
}

static void test_the_next_one_after_the_program_is_the_hook(void **state)
{
    (void)state;
    assert_true(bare_lies_in(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), "libgpulimit.so"));
    assert_ptr_equal(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), dlsym(driver, "cuMemAlloc_v2"));
}

static void test_what_is_no_hook_is_the_drivers_own(void **state)
{
    unsigned others = 0;
    (void)state;
    for (unsigned i = 0; i < SYMBOLS; i++) {
        if (is_hook(symbols[i]))
            continue;
        others++;
        void *address = dlsym(driver, symbols[i]);
        assert_true(bare_lies_in(address, "libcuda.so.1"));
        assert_ptr_equal(address, bare_dlsym(driver, symbols[i]));
        assert_ptr_equal(address, dlsym(RTLD_DEFAULT, symbols[i]));
    }
    assert_true(others > 50);
}

static void test_another_librarys_own_functions_are_found_by_its_handle(void **state)
{
    static const char *const names[] = {"cuInit", "cuMemAlloc_v2", "cuOwnFunction"};
    void *other = dlopen(getenv("OWN_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = NULL;
    (void)state;
    assert_non_null(other);
    for (unsigned i = 0; i < 3; i++)
        assert_true(bare_lies_in(dlsym(other, names[i]), "libown-driver.so"));
    *(void **)&init = dlsym(other, "cuInit");
    assert_int_equal(init(0), 4711);
    assert_null(dlsym(other, "cuMemFree_v2")); /* ours is no business of that library */
    assert_non_null(dlerror());
    assert_true(bare_lies_in(dlsym(driver, "cuInit"), "libgpulimit.so"));
    assert_int_equal(dlclose(other), 0);
}

static void test_names_that_the_driver_lacks_are_not_found(void **state)
{
    static const char *const names[] = {"cuNoSuchFunction",
                                        "cuMemAlloc_v3",
                                        "cuMemAlloc_ptsz",
                                        "cu",
                                        "cuInit ",
                                        "nvmlDeviceGetMemoryInfo_v3",
                                        "nvml",
                                        ""};
    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *const handles[] = {driver, RTLD_DEFAULT, RTLD_NEXT, dlopen(NULL, RTLD_LAZY)};
        for (unsigned k = 0; k < 4; k++) {
            char expected[512];
            assert_null(bare_dlsym(handles[k], names[i]));
            snprintf(expected, sizeof expected, "%s", dlerror());
            assert_null(dlsym(handles[k], names[i]));
            assert_string_equal(dlerror(), expected);
            assert_null(dlerror());
        }
    }
}

static void test_a_look_up_that_succeeds_leaves_no_error(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOOKS; i++) {
        assert_null(dlsym(driver, "cuNoSuchFunction")); /* an error that nobody asks for */
        assert_non_null(dlsym(home_of(hooks[i]), hooks[i]));
        assert_null(dlerror());
        assert_non_null(dlsym(RTLD_DEFAULT, hooks[i]));
        assert_null(dlerror());
    }
}

static void test_other_names_are_found_as_ever(void **state)
{
    static const char *const names[] = {
        "strlen",  "memcpy",  "malloc", "pthread_create", "pthread_mutex_lock",
        "environ", "stdout",  "dlopen", "dlerror",        "no_such_name",
        "main",    "culture", "c",      "cmocka_version"};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_ptr_equal(dlsym(RTLD_DEFAULT, names[i]), bare_dlsym(RTLD_DEFAULT, names[i]));
        assert_ptr_equal(dlsym(RTLD_NEXT, names[i]), bare_dlsym(RTLD_NEXT, names[i]));
        assert_ptr_equal(dlsym(libc, names[i]), bare_dlsym(libc, names[i]));
        assert_ptr_equal(dlsym(driver, names[i]), bare_dlsym(driver, names[i]));
    }
    assert_non_null(dlsym(RTLD_DEFAULT, "strlen"));
}

static void test_versions_are_found_as_ever(void **state)
{
    static const char *const names[] = {"memcpy", "pthread_cond_wait", "fmemopen", "dlsym",
                                        "no_such_name"};
    static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.14",
                                           "GLIBC_2.22",  "GLIBC_2.34",  "NO_SUCH_VERSION"};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    unsigned found = 0;
    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (unsigned k = 0; k < sizeof versions / sizeof versions[0]; k++) {
            void *address = dlvsym(libc, names[i], versions[k]);
            found += address != NULL;
            assert_ptr_equal(address, bare_dlvsym(libc, names[i], versions[k]));
            assert_ptr_equal(dlvsym(RTLD_NEXT, names[i], versions[k]),
                             bare_dlvsym(RTLD_NEXT, names[i], versions[k]));
        }
    }
    assert_true(found > 2);
}

/* Whoever fetches dlsym by dlsym is to get the hooks, too. */
static void test_dlsym_finds_itself(void **state)
{
    (void)state;
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "dlsym"), (void *)dlsym);
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "dlvsym"), (void *)dlvsym);
    assert_true(bare_lies_in((void *)dlsym, "libgpulimit.so"));
}

static int load_both(void **state)
{
    (void)state;
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL);
    return driver && nvml ? 0 : -1;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_driver_no_hook_is_found),
        cmocka_unit_test(test_looking_up_loads_neither_library),
        cmocka_unit_test_setup(test_threads_at_once_all_find_the_same, load_both),
        cmocka_unit_test(test_the_next_one_after_the_program_is_the_hook),
        cmocka_unit_test(test_what_is_no_hook_is_the_drivers_own),
        cmocka_unit_test(test_another_librarys_own_functions_are_found_by_its_handle),
        cmocka_unit_test(test_names_that_the_driver_lacks_are_not_found),
        cmocka_unit_test(test_a_look_up_that_succeeds_leaves_no_error),
        cmocka_unit_test(test_other_names_are_found_as_ever),
        cmocka_unit_test(test_versions_are_found_as_ever),
        cmocka_unit_test(test_dlsym_finds_itself),
    };
    return cmocka_run_group_tests(tests, bare_find_loader, NULL);
}
