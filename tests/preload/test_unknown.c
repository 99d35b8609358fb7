/* SPDX-License-Identifier: MIT
 *
 * A driver newer than the library (newer/): what it hands out that no table knows is told, in the
 * ledger and at verbosity 2, and handed out all the same. The cases build on each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare.h"
#include "gpulimit/region.h"

static void *driver;
static CUresult (*init)(unsigned);
static CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
static char log_path[] = "/tmp/test_unknown.XXXXXX";

/* This process's own ledger where it is mapped; NULL if there is none. */
static const struct gpulimit_header *find_ledger(void)
{
    char line[512], name[64];
    void *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    snprintf(name, sizeof name, "/" GPULIMIT_REGION_PREFIX "%d.", (int)getpid());
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long offset;
        if (strstr(line, name) && sscanf(line, "%p-%*s %*s %lx", &found, &offset) == 2 && offset)
            found = NULL;
    }
    fclose(maps);
    return found;
}

/* How many names the ledger has; each is one of those given, in their order. */
static unsigned count_names(const char *const expected[])
{
    const struct gpulimit_header *header = find_ledger();
    unsigned count = 0;
    assert_non_null(header);
    while (count < GPULIMIT_UNKNOWN_NAMES && header->unknown_names[count][0]) {
        assert_string_equal(header->unknown_names[count], expected[count]);
        count++;
    }
    return count;
}

/* How often the log has told of a name. */
static unsigned count_told(const char *name)
{
    static char text[16384];
    char wanted[128];
    unsigned count = 0;
    FILE *file = fopen(log_path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    snprintf(wanted, sizeof wanted, "newer than this library: what %s takes", name);
    for (const char *at = text; (at = strstr(at, wanted)); at++)
        count++;
    return count;
}

static void *ask(const char *name, int version)
{
    void *address = NULL;
    assert_int_equal(get(name, &address, version, 0, NULL), CUDA_SUCCESS);
    return address;
}

static const char *const names[] = {"cuMemHoard",       "cuMemHoardAsync", "cuPoolOne",
                                    "cuMemAlloc@99000", "cuPoolTwo",       "cuPoolThree",
                                    "cuPoolFour",       "cuPoolFive"};

static void test_a_look_up_before_the_first_cuda_call_is_told_with_it(void **state)
{
    (void)state;
    void *hoard = dlsym(driver, "cuMemHoard");
    assert_true(bare_lies_in(hoard, "libcuda.so.1"));
    assert_ptr_equal(hoard, bare_dlsym(driver, "cuMemHoard"));
    assert_null(find_ledger());
    assert_int_equal(init(0), CUDA_SUCCESS);
    assert_int_equal(count_names(names), 1);
    assert_int_equal(count_told("cuMemHoard"), 1);
}

static void test_later_ones_are_told_at_once_and_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(ask("cuMemHoardAsync", 99000), bare_dlsym(driver, "cuMemHoardAsync"));
        assert_non_null(dlsym(driver, "cuPoolOne"));
        assert_null(dlvsym(driver, "cuPoolOne", "NO_SUCH_VERSION"));
        assert_non_null(dlsym(driver, "cuMemHoard"));
    }
    assert_int_equal(count_names(names), 3);
    assert_int_equal(count_told("cuMemHoard"), 1);
    assert_int_equal(count_told("cuMemHoardAsync"), 1);
    assert_int_equal(count_told("cuPoolOne"), 1);
}

static void test_a_later_variant_of_a_hook_is_told_with_its_version(void **state)
{
    (void)state;
    assert_true(bare_lies_in(ask("cuMemAlloc", 3020), "libgpulimit.so"));
    assert_int_equal(count_names(names), 3);
    assert_ptr_equal(ask("cuMemAlloc", 99000), bare_dlsym(driver, "cuMemAlloc_v9"));
    assert_int_equal(count_names(names), 4);
    assert_int_equal(count_told("cuMemAlloc@99000"), 1);
}

static void test_what_is_known_harmless_or_absent_is_not_told(void **state)
{
    (void)state;
    assert_non_null(ask("cuMemAdvise", 99000));
    assert_non_null(ask("cuMemcpyOddly", 99000));
    assert_non_null(ask("cuLaunchOddly", 99000));
    assert_null(ask("cuMemHoardMore", 99000));
    assert_null(ask("cuMemHoardAsync", 13000));
    assert_null(ask("", 0));
    assert_non_null(dlsym(driver, "cuMemAdvise"));
    assert_non_null(dlsym(driver, "cuMemcpyOddly"));
    assert_null(dlsym(driver, "cuMemHoardMore"));
    assert_null(dlsym(RTLD_DEFAULT, "cudaMallocAnything"));
    assert_int_equal(count_names(names), 4);
}

static void test_a_child_tells_them_in_its_own_ledger(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        bool is_clean = find_ledger() == NULL && init(0) == CUDA_SUCCESS;
        const struct gpulimit_header *header = find_ledger();
        for (unsigned i = 0; i < 4; i++)
            is_clean = is_clean && header && strcmp(header->unknown_names[i], names[i]) == 0;
        _exit(is_clean ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_told("cuMemHoard"), 1);
}

static void test_the_list_has_an_end(void **state)
{
    static const char *const more[] = {
        "cuPoolTwo",  "cuPoolThree", "cuPoolFour",
        "cuPoolFive", "cuPoolSix",   "cuModuleWithANameFarLongerThanAnyPlaceForOneInTheLedger"};
    (void)state;
    for (unsigned i = 0; i < sizeof more / sizeof more[0]; i++)
        assert_ptr_equal(dlsym(driver, more[i]), bare_dlsym(driver, more[i]));
    assert_int_equal(count_names(names), GPULIMIT_UNKNOWN_NAMES);
}

static int set_up(void **state)
{
    int file = mkstemp(log_path);
    if (file < 0 || bare_find_loader(state) != 0)
        return -1;
    close(file);
    setenv("GPU_LIMIT_LOG", log_path, 1);
    setenv("GPU_LIMIT_VERBOSE", "2", 1);
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return -1;
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
    return bare_lies_in((void *)get, "libgpulimit.so") ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(log_path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_look_up_before_the_first_cuda_call_is_told_with_it),
        cmocka_unit_test(test_later_ones_are_told_at_once_and_once),
        cmocka_unit_test(test_a_later_variant_of_a_hook_is_told_with_its_version),
        cmocka_unit_test(test_what_is_known_harmless_or_absent_is_not_told),
        cmocka_unit_test(test_a_child_tells_them_in_its_own_ledger),
        cmocka_unit_test(test_the_list_has_an_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
