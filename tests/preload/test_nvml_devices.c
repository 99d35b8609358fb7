/* SPDX-License-Identifier: MIT
 *
 * entry_nvml.c: NVML shows each device's limit, whatever a program finds the device by, before CUDA
 * and without it. On a machine of two GPUs, in programs of their own, since what is tried is mostly
 * what they are started with.
 */
#include "preload.h"

#include "bare.h"
#include "nvml_ask.h"
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS = 2 };

/* ---- in the started program ---- */

static int print_totals(void)
{
    nvmlMemory_t memory;
    for (unsigned index = 0; index < GPUS; index++) {
        expect(nvml_ask(nvml_device(index), &memory));
        printf("%llu ", memory.total >> 20);
    }
    printf("| ");
    return 0;
}

/* Prints the totals of NVML's devices: before CUDA, after cuInit, and when CUDA uses all of its
 * own, each of which NVML then has to agree on. */
static int play_devices(void)
{
    int count;
    expect(nvmlInit_v2() == NVML_SUCCESS && print_totals() == 0);
    expect(cuInit(0) == CUDA_SUCCESS);
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* too late for CUDA, so no longer true */
    expect(print_totals() == 0);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS);
    for (CUdevice ordinal = 0; ordinal < count; ordinal++) {
        CUcontext context;
        size_t total;
        nvmlMemory_t memory;
        nvmlDevice_t device = nvml_device_of(ordinal);
        expect(cuDeviceTotalMem_v2(&total, ordinal) == CUDA_SUCCESS);
        expect(nvml_ask(device, &memory) && memory.total == total);
        CUresult created = cuCtxCreate_v2(&context, 0, ordinal);
        if (memory.total == 0)
            expect(created == CUDA_ERROR_OUT_OF_MEMORY); /* not even a context */
        else
            expect(created == CUDA_SUCCESS && nvml_agrees(device));
    }
    return print_totals();
}

static int play_handles(void)
{
    nvmlDevice_t by_index, by_uuid, by_bus;
    nvmlMemory_t memory;
    char uuid[96];
    nvmlPciInfo_t pci;
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(1, &by_index) == NVML_SUCCESS);
    expect(nvmlDeviceGetUUID(by_index, uuid, sizeof uuid) == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByUUID(uuid, &by_uuid) == NVML_SUCCESS);
    expect(nvmlDeviceGetPciInfo_v3(by_index, &pci) == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &by_bus) == NVML_SUCCESS);
    expect(nvml_ask(by_index, &memory) && memory.total == MIB(1024));
    expect(nvml_ask(by_uuid, &memory) && memory.total == MIB(1024));
    expect(nvml_ask(by_bus, &memory) && memory.total == MIB(1024));
    return 0;
}

/* NVML alone, loaded late and asked by dlsym, as pynvml does: nothing begins. */
static int play_alone(void)
{
    nvmlReturn_t (*memory_info)(nvmlDevice_t, nvmlMemory_t *) = NULL;
    nvmlMemory_t memory;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    *(void **)&memory_info = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    expect(memory_info && bare_lies_in(*(void **)&memory_info, "libgpulimit.so"));
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(memory_info(nvml_device(0), &memory) == NVML_SUCCESS);
    printf("%llu", memory.total >> 20);
    expect(!preload_ledger());
    return 0;
}

static int play_errors(void)
{
    nvmlDevice_t nothing = (nvmlDevice_t)&nothing;
    nvmlMemory_t memory = {7, 8, 9};
    nvmlMemory_v2_t second = {.version = 1, .total = 7};
    expect(nvmlDeviceGetMemoryInfo(nothing, &memory) == NVML_ERROR_UNINITIALIZED);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    nvmlDevice_t device = nvml_device(0);
    expect(nvmlDeviceGetMemoryInfo(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    expect(nvmlDeviceGetMemoryInfo_v2(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    expect(nvmlDeviceGetMemoryInfo(nothing, &memory) == NVML_ERROR_INVALID_ARGUMENT);
    expect(nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    expect(memory.total == 7 && memory.free == 8 && memory.used == 9);
    expect(second.version == 1 && second.total == 7);
    expect(nvmlDeviceGetAttributes_v2(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    return 0;
}

static int play_missing(void)
{
    static const char *const names[] = {"nvmlDeviceGetAttributes", "nvmlDeviceGetMemoryInfo_v3"};
    void *nvml = bare_nvml();
    expect(nvml && dlsym(nvml, "nvmlDeviceGetMemoryInfo"));
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)dlerror();
        expect(!dlsym(nvml, names[i]) && strstr(dlerror(), names[i]));
        expect(!dlsym(RTLD_DEFAULT, names[i]) && strstr(dlerror(), names[i]));
    }
    return 0;
}

/* SIMGPU_MIG=1: all devices are instances. Prints what each says to be its memory, in MiB. */
static int play_instances(void)
{
    nvmlMemory_t memory;
    nvmlDeviceAttributes_t attributes;
    expect(nvmlInit_v2() == NVML_SUCCESS);
    for (unsigned index = 0; index < GPUS; index++) {
        expect(nvml_ask(nvml_device(index), &memory));
        expect(nvmlDeviceGetAttributes_v2(nvml_device(index), &attributes) == NVML_SUCCESS);
        expect(attributes.memorySizeMB == memory.total >> 20);
        expect(attributes.multiprocessorCount > 0);
        printf("%llu ", attributes.memorySizeMB);
    }
    return 0;
}

static const struct role roles[] = {
    {"devices", play_devices},
    {"handles", play_handles},
    {"alone", play_alone},
    {"errors", play_errors},
    {"missing", play_missing},
    {"instances", play_instances},
    {0},
};

/* ---- the test ---- */

static struct program program; /* the one started last */

static void assert_plays(const char *role)
{
    program_play(&program, role, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

static void test_a_device_is_the_same_by_index_uuid_and_bus(void **state)
{
    (void)state;
    assert_plays("handles");
}

static void test_errors_are_nvmls_own(void **state)
{
    (void)state;
    assert_plays("errors");
}

static void test_names_that_nvml_lacks_are_not_found(void **state)
{
    (void)state;
    assert_plays("missing");
}

static void assert_totals(const char *limit, const char *visible, const char *before,
                          const char *afterwards)
{
    char limits[64], devices[128], expected[128];
    snprintf(limits, sizeof limits, "GPU_LIMIT_MB=%s", limit);
    snprintf(devices, sizeof devices, "CUDA_VISIBLE_DEVICES%s%s", visible ? "=" : "",
             visible ? visible : "");
    snprintf(expected, sizeof expected, "%s | %s | %s | ", before, afterwards, afterwards);
    program_play(&program, "devices", PROGRAM_LIST(limits, devices));
    program_assert_ok(&program);
    assert_string_equal(program.out, expected);
}

static void assert_totals_always(const char *limit, const char *visible, const char *totals)
{
    assert_totals(limit, visible, totals, totals);
}

static void test_a_limit_by_ordinal_is_that_of_the_device_cuda_will_make_it(void **state)
{
    (void)state;
    assert_totals_always("0=1G,1=2G", NULL, "1024 2048");
    assert_totals_always("0=1G,1=2G", "0", "1024 8192");
    assert_totals_always("0=1G,1=2G", "1", "8192 1024");
    assert_totals_always("0=1G,1=2G", "1,0", "2048 1024");
    assert_totals_always("0=1G,1=2G", "GPU-52,GPU-51", "2048 1024");
    assert_totals_always("0=1G,1=2G", "1,-1,0", "8192 1024");
}

static void test_other_limits_do_not_ask_for_the_order(void **state)
{
    (void)state;
    assert_totals_always("GPU-52=1G,*=2G", "1,0", "2048 1024");
    assert_totals_always("25%", NULL, "2048 2048");
    assert_totals_always("100G", NULL, "8192 8192");
    assert_totals_always("0=1G", NULL, "1024 0"); /* what a list leaves out gets nothing */
}

static void test_real_leaves_nvml_alone(void **state)
{
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_NVML=real"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8192");
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_NVML=limit"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "1024");
}

static void test_without_cuda_nothing_is_said_and_no_ledger_made(void **state)
{
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_VERBOSE=4"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_string_equal(program.out, "1024");
}

static void test_without_a_limit_the_figures_are_nvmls_own(void **state)
{
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_MB"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8192");
}

static void test_an_instance_of_a_card_is_no_larger_than_its_limit(void **state)
{
    (void)state;
    program_play(&program, "instances", PROGRAM_LIST("SIMGPU_MIG=1", "GPU_LIMIT_MB=1G"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "1024 1024 ");
    program_play(&program, "instances", PROGRAM_LIST("SIMGPU_MIG=1", "GPU_LIMIT_MB=MIG-52=2G"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "0 2048 ");
}

static void test_a_configuration_in_error_leaves_the_figures_alone(void **state)
{
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_NVML=yes"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_string_equal(program.out, "8192");
    program_play(&program, "devices", PROGRAM_LIST("GPU_LIMIT_NVML=yes"));
    assert_int_not_equal(program.status, 0);
    assert_non_null(strstr(program.err, "GPU_LIMIT_NVML=\"yes\""));
    assert_non_null(strstr(program.err, "GPU_LIMIT_NVML=limit or real"));
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_device_is_the_same_by_index_uuid_and_bus),
        cmocka_unit_test(test_errors_are_nvmls_own),
        cmocka_unit_test(test_names_that_nvml_lacks_are_not_found),
        cmocka_unit_test(test_a_limit_by_ordinal_is_that_of_the_device_cuda_will_make_it),
        cmocka_unit_test(test_other_limits_do_not_ask_for_the_order),
        cmocka_unit_test(test_real_leaves_nvml_alone),
        cmocka_unit_test(test_without_cuda_nothing_is_said_and_no_ledger_made),
        cmocka_unit_test(test_without_a_limit_the_figures_are_nvmls_own),
        cmocka_unit_test(test_an_instance_of_a_card_is_no_larger_than_its_limit),
        cmocka_unit_test(test_a_configuration_in_error_leaves_the_figures_alone),
    };
    return count > 1 ? role_play(roles, words[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
