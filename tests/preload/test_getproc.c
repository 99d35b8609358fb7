/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress in both forms: whatever is asked, the answer is the driver's, but for the
 * addresses of hooked functions. What programs really ask for is in getprocaddress-requests.txt,
 * given as the first argument.
 */
#include "preload.h"

#include "bare.h"
#include "hook.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *requests_path;

typedef CUresult (*form1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*form2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static form1 drivers_form1;
static form2 drivers_form2;
static void *drivers_own[HOOKS]; /* its functions that have hooks */

struct request {
    const char *name;
    int version;
    cuuint64_t flags;
};

/* What a call leaves; poisoned before. */
struct answer {
    CUresult result;
    void *address;
    int found;
};

static struct answer ask1(form1 function, const struct request *request)
{
    struct answer answer = {.address = (void *)0x5a5a, .found = 77};
    answer.result = function(request->name, &answer.address, request->version, request->flags);
    return answer;
}

static struct answer ask2(form2 function, const struct request *request)
{
    struct answer answer = {.address = (void *)0x5a5a};
    CUdriverProcAddressQueryResult found = (CUdriverProcAddressQueryResult)77;
    answer.result =
        function(request->name, &answer.address, request->version, request->flags, &found);
    answer.found = (int)found;
    return answer;
}

/* The hook that stands for a function of the driver's, NULL if none does. */
static void *hook_on(const void *drivers_address)
{
    for (unsigned i = 0; drivers_address && i < HOOKS; i++) {
        if (drivers_own[i] == drivers_address)
            return (void *)hooks[i].linked;
    }
    return NULL;
}

/* Returns whether the answer was a hook. */
static bool assert_right(const struct request *request, const struct answer *ours,
                         const struct answer *drivers)
{
    void *hook = drivers->result == CUDA_SUCCESS ? hook_on(drivers->address) : NULL;
    if (ours->result != drivers->result || ours->found != drivers->found ||
        ours->address != (hook ? hook : drivers->address))
        fail_msg("%s %d %d: answered %d, status %d, %p for the driver's %d, %d, %p", request->name,
                 request->version, (int)request->flags, (int)ours->result, ours->found,
                 ours->address, (int)drivers->result, drivers->found, drivers->address);
    return hook != NULL;
}

static bool assert_same(const struct request *request)
{
    struct answer ours = ask1(cuGetProcAddress, request);
    struct answer drivers = ask1(drivers_form1, request);
    assert_right(request, &ours, &drivers);
    ours = ask2(cuGetProcAddress_v2, request);
    drivers = ask2(drivers_form2, request);
    return assert_right(request, &ours, &drivers);
}

static void test_recorded_requests_are_answered_as_by_the_driver(void **state)
{
    FILE *file = fopen(requests_path, "re");
    unsigned asked = 0, hooked = 0;
    char line[256], name[128];
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct request request = {.name = name};
        unsigned long long flags;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%127s %d %llu", name, &request.version, &flags), 3);
        request.flags = flags;
        asked++;
        hooked += assert_same(&request);
    }
    fclose(file);
    assert_true(asked > 600);
    assert_true(hooked > 30);
}

static void test_every_function_at_every_turn_of_versions(void **state)
{
    static const struct request rows[] = {
#define SYMBOL(_symbol, _base, _version, _per_thread) {#_base, _version, 0},
#include "symbols.def"
    };
    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (cuuint64_t flags = 0; flags < 6; flags++) {
            for (int more = -1; more < 2; more++) {
                struct request request = {rows[i].name, rows[i].version + more, flags};
                assert_same(&request);
            }
        }
    }
}

static void test_what_the_driver_does_not_know(void **state)
{
    static const char *const names[] = {"",
                                        "cuNoSuchFunction",
                                        "cuMemAlloc_v2", /* only undecorated names are known */
                                        "cuMemAllocAsync_ptsz",
                                        "cuGetProcAddress_v2",
                                        "dlsym",
                                        "simgpu_calls"};
    static const int versions[] = {0, 13000, 99000, -1};
    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (unsigned k = 0; k < 4; k++) {
            struct request request = {names[i], versions[k], 0};
            assert_false(assert_same(&request));
        }
    }
}

static void test_its_own_name_gives_our_two_forms(void **state)
{
    const struct request old = {"cuGetProcAddress", 11030, 0};
    const struct request new = {"cuGetProcAddress", 12000, 0};
    (void)state;
    assert_ptr_equal(ask1(cuGetProcAddress, &old).address, (void *)cuGetProcAddress);
    assert_ptr_equal(ask1(cuGetProcAddress, &new).address, (void *)cuGetProcAddress_v2);
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &old).address, (void *)cuGetProcAddress);
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &new).address, (void *)cuGetProcAddress_v2);
    assert_true(bare_lies_in((void *)cuGetProcAddress, "libgpulimit.so"));
}

static void test_the_version_chooses_the_interface(void **state)
{
    const struct request old = {"cuMemAlloc", 2000, 0}, new = {"cuMemAlloc", 3020, 0};
    const struct request early = {"cuMemAllocAsync", 11010, 0};
    (void)state;
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &old).address, (void *)cuMemAlloc);
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &new).address, (void *)cuMemAlloc_v2);
    assert_null(ask2(cuGetProcAddress_v2, &early).address);
    assert_int_equal(ask2(cuGetProcAddress_v2, &early).found,
                     CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static void test_flags_choose_the_stream(void **state)
{
    const struct request legacy = {"cuMemAllocAsync", 11020, 1};
    const struct request per_thread = {"cuMemAllocAsync", 11020, 2};
    const struct request neither = {"cuMemFree", 3020, 2};
    (void)state;
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &legacy).address, (void *)cuMemAllocAsync);
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &per_thread).address, (void *)cuMemAllocAsync_ptsz);
    assert_ptr_equal(ask1(cuGetProcAddress, &per_thread).address, (void *)cuMemAllocAsync_ptsz);
    assert_ptr_equal(ask2(cuGetProcAddress_v2, &neither).address, (void *)cuMemFree_v2);
}

static void test_the_status_may_be_left_out(void **state)
{
    void *address = NULL;
    (void)state;
    assert_ok(cuGetProcAddress_v2("cuMemFree", &address, 3020, 0, NULL));
    assert_ptr_equal(address, (void *)cuMemFree_v2);
    assert_ok(cuGetProcAddress_v2("cuNoSuchFunction", &address, 3020, 0, NULL));
    assert_null(address);
}

static void test_arguments_that_the_driver_refuses(void **state)
{
    CUdriverProcAddressQueryResult found;
    void *address;
    (void)state;
    assert_int_equal(cuGetProcAddress_v2(NULL, &address, 3020, 0, &found),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress_v2("cuMemFree", NULL, 3020, 0, &found),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress("cuMemFree", NULL, 3020, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_a_failure_of_the_drivers_comes_through(void **state)
{
    const struct request request = {"cuMemAlloc", 3020, 0};
    (void)state;
    simgpu_fail_next("cuGetProcAddress_v2", CUDA_ERROR_UNKNOWN);
    struct answer answer = ask2(cuGetProcAddress_v2, &request);
    assert_int_equal(answer.result, CUDA_ERROR_UNKNOWN);
    assert_ptr_equal(answer.address, 0x5a5a);
    assert_int_equal(answer.found, 77);
    simgpu_fail_next("cuGetProcAddress", CUDA_ERROR_UNKNOWN);
    answer = ask1(cuGetProcAddress, &request);
    assert_int_equal(answer.result, CUDA_ERROR_UNKNOWN);
    assert_ptr_equal(answer.address, 0x5a5a);
}

static int set_up(void **state)
{
    if (bare_find_loader(state) != 0)
        return -1;
    for (unsigned i = 0; i < HOOKS; i++)
        drivers_own[i] = bare_dlsym(bare_driver(), hooks[i].symbol);
    *(void **)&drivers_form1 = bare_dlsym(bare_driver(), "cuGetProcAddress");
    *(void **)&drivers_form2 = bare_dlsym(bare_driver(), "cuGetProcAddress_v2");
    return bare_lies_in((void *)drivers_form2, "libcuda.so.1") ? 0 : -1;
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_requests_are_answered_as_by_the_driver),
        cmocka_unit_test(test_every_function_at_every_turn_of_versions),
        cmocka_unit_test(test_what_the_driver_does_not_know),
        cmocka_unit_test(test_its_own_name_gives_our_two_forms),
        cmocka_unit_test(test_the_version_chooses_the_interface),
        cmocka_unit_test(test_flags_choose_the_stream),
        cmocka_unit_test(test_the_status_may_be_left_out),
        cmocka_unit_test(test_arguments_that_the_driver_refuses),
        cmocka_unit_test(test_a_failure_of_the_drivers_comes_through),
    };
    if (count < 2) {
        fprintf(stderr, "usage: test_getproc REQUESTS\n");
        return 2;
    }
    requests_path = words[1];
    return cmocka_run_group_tests(tests, set_up, NULL);
}
