/* SPDX-License-Identifier: MIT
 *
 * The variables, end to end: a value that is not understood is answered with one line at the first
 * CUDA call, and no memory; one that is understood does what it says, on each device. The parsing
 * itself is tested in tests/unit/test_config.c.
 */
#include "preload.h"

#include "bare.h"
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- in the started program ---- */

/* A program that goes on although cuInit failed, and a driver that was initialised all the same: by
 * a library that we do not see. */
static int play_wrong(void)
{
    CUmemAllocationProp prop = preload_device_prop();
    CUmemGenericAllocationHandle handle;
    CUcontext context;
    CUdeviceptr address;
    CUresult (*driver_init)(unsigned) = NULL;
    expect(bare_find_loader(NULL) == 0);
    *(void **)&driver_init = bare_dlsym(bare_driver(), "cuInit");
    expect(cuInit(0) != CUDA_SUCCESS);
    expect(cuInit(0) != CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, 1) != CUDA_SUCCESS);
    expect(driver_init(0) == CUDA_SUCCESS);
    expect(cuMemCreate(&handle, MIB(2), &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAllocManaged(&address, 1, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAllocAsync(&address, 1, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(simgpu_calls("cuMemAlloc_v2") == 1);
    return 0;
}

/* Does not get so far as to call CUDA. */
static int play_nothing(void)
{
    return dlsym(RTLD_DEFAULT, "cuInit") && bare_driver() ? 0 : 1;
}

/* Prints each device's total and what it gives at most, in MiB. */
static int play_devices(void)
{
    int count;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS);
    for (CUdevice device = 0; device < count; device++) {
        CUcontext context;
        CUdeviceptr address;
        size_t total, free_bytes, all;
        expect(cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS);
        if (total == 0) {
            printf("0 ");
            expect(cuCtxCreate_v2(&context, 0, device) == CUDA_ERROR_OUT_OF_MEMORY);
            continue;
        }
        expect(cuCtxCreate_v2(&context, 0, device) == CUDA_SUCCESS);
        expect(cuMemGetInfo_v2(&free_bytes, &all) == CUDA_SUCCESS);
        expect(all == total);
        expect(cuMemAlloc_v2(&address, free_bytes + MIB(2)) == CUDA_ERROR_OUT_OF_MEMORY);
        expect(cuMemAlloc_v2(&address, free_bytes) == CUDA_SUCCESS);
        expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        printf("%zu ", free_bytes >> 20);
    }
    return 0;
}

static int play_uuid(void)
{
    CUuuid uuid;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetUuid_v2(&uuid, 1) == CUDA_SUCCESS);
    printf("GPU-");
    for (unsigned i = 0; i < sizeof uuid.bytes; i++)
        printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
               (unsigned char)uuid.bytes[i]);
    return 0;
}

/* Without a limit everything is the driver's answer; the ledger counts nevertheless. */
static int play_no_limit(void)
{
    CUresult (*driver_info)(size_t *, size_t *) = NULL;
    size_t free_bytes, total, drivers_free, drivers_total;
    CUdeviceptr address;
    expect(bare_find_loader(NULL) == 0);
    *(void **)&driver_info = bare_dlsym(bare_driver(), "cuMemGetInfo_v2");
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(5000)) == CUDA_SUCCESS);
    expect(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
    expect(driver_info(&drivers_free, &drivers_total) == CUDA_SUCCESS);
    expect(free_bytes == drivers_free && total == drivers_total);
    expect(cuMemAlloc_v2(&address, MIB(5000)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(simgpu_calls("cuMemAlloc_v2") == 2); /* the driver said so */
    expect(preload_device() && preload_device()->live_allocations == 1);
    expect(preload_device()->charged_bytes == MIB(5000));
    expect(preload_device()->limit_bytes == GPULIMIT_NO_LIMIT);
    expect(preload_device()->denials == 0);
    return 0;
}

/* One byte is one byte, whatever the driver commits for it. GPU_LIMIT_MB=1 */
static int play_allocations(void)
{
    CUdeviceptr first, second, none;
    size_t free_bytes, total;
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&first, MIB(1) - 1) == CUDA_SUCCESS);
    expect(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
    expect(free_bytes == 1 && total == MIB(1));
    expect(cuMemAlloc_v2(&none, 2) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAllocAsync(&none, 2, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAllocAsync(&second, 1, NULL) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&none, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemFreeAsync(second, NULL) == CUDA_SUCCESS);
    expect(cuMemFree_v2(first) == CUDA_SUCCESS);
    expect(cuMemAllocManaged(&first, MIB(1), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    expect(preload_device()->charged_bytes == MIB(1));
    return 0;
}

/* Its end asks about contexts, of those devices that the program has used. */
static int play_green(void)
{
    CUdevResource all;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    expect(role_begin() == 0);
    expect(preload_free() == MIB(1024));
    expect(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    expect(cuDevResourceGenerateDesc(&desc, &all, 1) == CUDA_SUCCESS);
    expect(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
    expect(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
    expect(preload_device()[0].in_use);
    expect(!preload_device()[1].in_use);
    return 0;
}

static const struct role roles[] = {{"wrong", play_wrong},       {"nothing", play_nothing},
                                    {"devices", play_devices},   {"uuid", play_uuid},
                                    {"no limit", play_no_limit}, {"allocations", play_allocations},
                                    {"green", play_green},       {0}};

/* ---- in the test ---- */

static struct program program;

#define PLAY(_role, ...) program_play(&program, _role, PROGRAM_LIST(__VA_ARGS__))

static void test_wrong_values_allow_nothing_and_are_told_once(void **state)
{
    static const char *const wrong[] = {
        "GPU_LIMIT_MB=abc",      "GPU_LIMIT_MB=-1",      "GPU_LIMIT_MB=",
        "GPU_LIMIT_MB=1g",       "GPU_LIMIT_MB=0",       "GPU_LIMIT_MB=99999999999999999999",
        "GPU_LIMIT_MB=1024 MB",  "GPU_LIMIT_MB=150%",    "GPU_LIMIT_MB=1G,1=2G",
        "GPU_LIMIT_MB=0=1G,",    "GPU_LIMIT_MB=GPU-=1G", "GPU_LIMIT_COUNT=x",
        "GPU_LIMIT_MEMORY=1024", "GPU_LIMIT_=1",         "GPU_LIMIT_ON_EXCEED=pray",
        "GPU_LIMIT_VERBOSE=5",   "GPU_LIMIT_VERBOSE=",   "GPU_LIMIT_DIR=here",
        "GPU_LIMIT_GROUP=team",  "GPU_LIMIT_FAIL=nth:1"};
    (void)state;
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "gpulimit: %.*s=", (int)strcspn(wrong[i], "="), wrong[i]);
        PLAY("wrong", wrong[i]);
        program_assert_ok(&program);
        assert_string_equal(program.out, "");
        assert_int_equal(program_lines(program.err), 1);
        assert_int_equal(strncmp(program.err, name, strlen(name)), 0);
        assert_non_null(strchr(program.err, '(')); /* what would be right */
    }
}

static void test_wrong_values_are_not_told_before_cuda_is_called(void **state)
{
    (void)state;
    PLAY("nothing", "GPU_LIMIT_MB=abc", "GPU_LIMIT_VERBOSE=4");
    program_assert_ok(&program);
    assert_string_equal(program.out, "");
    assert_string_equal(program.err, "");
}

static void assert_devices(const char *limit, const char *expected)
{
    char variable[128];
    snprintf(variable, sizeof variable, "GPU_LIMIT_MB=%s", limit);
    PLAY("devices", "SIMGPU_DEVICES=2", variable);
    program_assert_ok(&program);
    assert_string_equal(program.out, expected);
}

static void test_amounts(void **state)
{
    (void)state;
    assert_devices("1024", "1024 1024 ");
    assert_devices("512M", "512 512 ");
    assert_devices("1.5G", "1536 1536 ");
    assert_devices("2GiB", "2048 2048 ");
    assert_devices("2097152K", "2048 2048 ");
    assert_devices("50%", "4096 4096 ");
}

static void test_a_limit_above_the_card_is_the_card(void **state)
{
    (void)state;
    assert_devices("1T", "8192 8192 ");
}

static void test_devices_by_index_uuid_and_star(void **state)
{
    char limit[128];
    (void)state;
    assert_devices("0=1G,1=2G", "1024 2048 ");
    assert_devices("1=2G,*=512M", "512 2048 ");
    PLAY("uuid", "SIMGPU_DEVICES=2");
    program_assert_ok(&program);
    snprintf(limit, sizeof limit, "%.60s=256M,*=1G", program.out);
    assert_devices(limit, "1024 256 ");
}

static void test_an_unnamed_device_gives_nothing_and_says_why(void **state)
{
    (void)state;
    PLAY("devices", "SIMGPU_DEVICES=2", "GPU_LIMIT_MB=0=1G", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.out, "1024 0 ");
    assert_non_null(strstr(program.err, "on GPU 1: this GPU is not named in GPU_LIMIT_MB=0=1G"));
    PLAY("devices", "SIMGPU_DEVICES=2", "GPU_LIMIT_MB=1=1G", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.out, "0 1024 ");
    assert_non_null(strstr(program.err, "on GPU 0: this GPU is not named in GPU_LIMIT_MB=1=1G"));
}

static void test_a_device_that_was_not_used_is_not_in_the_ledger(void **state)
{
    (void)state;
    PLAY("green", "SIMGPU_DEVICES=2", "GPU_LIMIT_MB=1024");
    program_assert_ok(&program);
}

static void test_without_a_limit_there_is_only_the_ledger(void **state)
{
    (void)state;
    PLAY("no limit", "GPU_LIMIT_MB", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

static void test_counting_allocations_counts_bytes(void **state)
{
    (void)state;
    PLAY("allocations", "GPU_LIMIT_MB=1", "GPU_LIMIT_COUNT=allocations");
    program_assert_ok(&program);
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_values_allow_nothing_and_are_told_once),
        cmocka_unit_test(test_wrong_values_are_not_told_before_cuda_is_called),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_a_limit_above_the_card_is_the_card),
        cmocka_unit_test(test_devices_by_index_uuid_and_star),
        cmocka_unit_test(test_an_unnamed_device_gives_nothing_and_says_why),
        cmocka_unit_test(test_a_device_that_was_not_used_is_not_in_the_ledger),
        cmocka_unit_test(test_without_a_limit_there_is_only_the_ledger),
        cmocka_unit_test(test_counting_allocations_counts_bytes),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
