/* SPDX-License-Identifier: MIT
 *
 * entry_nvml.c: NVML shows the limit, as cuMemGetInfo does, whatever a program finds the device by,
 * before CUDA and without it. On a machine of two GPUs, in programs of their own, since what is
 * tried is mostly what they are started with.
 */
#include "preload.h"

#include "bare.h"
#include "nvml_api.h"
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS = 2, THREADS = 4, ROUNDS = 200 };

/* ---- in the started program ---- */

static bool is_consistent(const nvmlMemory_t *first, const nvmlMemory_v2_t *second)
{
    return first->total == second->total && first->free == second->free &&
           first->used == first->total - first->free && second->used == first->used &&
           second->total == second->reserved + second->free + second->used;
}

/* Both versions of a device's figures. Returns false if they are not one and the same. */
static bool ask(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
    return nvmlDeviceGetMemoryInfo(device, memory) == NVML_SUCCESS &&
           nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_SUCCESS &&
           second.version == NVML_MEMORY_V2 && is_consistent(memory, &second);
}

/* Whether NVML and cuMemGetInfo, which is asked of the current device, say the same. */
static bool agrees(nvmlDevice_t device)
{
    nvmlMemory_t memory;
    size_t free_bytes, total;
    return cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && ask(device, &memory) &&
           memory.total == total && memory.free == free_bytes;
}

static nvmlDevice_t device_of(unsigned index)
{
    nvmlDevice_t device = NULL;
    if (nvmlDeviceGetHandleByIndex_v2(index, &device) != NVML_SUCCESS)
        fprintf(stderr, "NVML has no device %u\n", index);
    return device;
}

/* NVML's handle of a device of CUDA's. */
static nvmlDevice_t device_of_ordinal(CUdevice ordinal)
{
    char bus[32];
    nvmlDevice_t device = NULL;
    if (cuDeviceGetPCIBusId(bus, sizeof bus, ordinal) != CUDA_SUCCESS ||
        nvmlDeviceGetHandleByPciBusId_v2(bus, &device) != NVML_SUCCESS)
        fprintf(stderr, "NVML does not know CUDA's device %d\n", ordinal);
    return device;
}

/* GPU_LIMIT_MB=1024 */
static int play_agree(void)
{
    CUdeviceptr linear, managed, async;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = device_of(0);
    expect(agrees(device));
    expect(cuMemAlloc_v2(&linear, MIB(100) + 1) == CUDA_SUCCESS && agrees(device));
    expect(cuMemAllocManaged(&managed, MIB(200), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    expect(agrees(device));
    expect(cuMemAllocAsync(&async, MIB(100), NULL) == CUDA_SUCCESS && agrees(device));
    expect(ask(device, &memory) && memory.total == MIB(1024));
    expect(memory.used == preload_device()->charged_bytes && memory.used >= MIB(102 + 200 + 128));
    expect(cuMemFreeAsync(async, NULL) == CUDA_SUCCESS && agrees(device));
    expect(cuStreamSynchronize(NULL) == CUDA_SUCCESS && agrees(device));
    expect(cuMemAlloc_v2(&async, memory.free + MIB(256)) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(agrees(device));
    expect(cuMemFree_v2(managed) == CUDA_SUCCESS && cuMemFree_v2(linear) == CUDA_SUCCESS);
    expect(agrees(device));
    expect(cuMemFree_v2(async) == CUDA_SUCCESS); /* 0: it was refused */
    return 0;
}

/* What is freed in stream order comes back at a moment that no call of ours sees. */
static int play_late(void)
{
    CUdeviceptr async;
    CUstream stream;
    nvmlMemory_t before, after;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = device_of(0);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(ask(device, &before));
    expect(cuMemAllocAsync(&async, MIB(100), stream) == CUDA_SUCCESS);
    expect(cuMemFreeAsync(async, stream) == CUDA_SUCCESS);
    expect(bare_find_loader(NULL) == 0);
    CUresult (*synchronize)(CUstream) = NULL;
    *(void **)&synchronize = bare_dlsym(bare_driver(), "cuStreamSynchronize");
    expect(synchronize(stream) == CUDA_SUCCESS);
    expect(ask(device, &after)); /* first, before cuMemGetInfo looks */
    expect(after.free == before.free && agrees(device));
    return 0;
}

/* The calls that a capture would not survive are not made. */
static int play_capture(void)
{
    CUdeviceptr linear, async;
    CUstream stream;
    CUgraph graph;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = device_of(0);
    expect(cuMemAllocAsync(&async, MIB(100), NULL) == CUDA_SUCCESS); /* a pool to look at */
    expect(cuMemAlloc_v2(&linear, MIB(100)) == CUDA_SUCCESS);
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    expect(ask(device, &memory) && memory.total == MIB(1024) && memory.free <= MIB(824));
    expect(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    return 0;
}

static CUcontext threads_context;
static atomic_uint threads_turn;

static void *thread_says(const char *wrong)
{
    fprintf(stderr, "%s\n", wrong);
    return &threads_turn;
}

/* Every other thread has a context and allocates. Returns NULL if all was right. */
static void *ask_and_allocate(void *argument)
{
    nvmlDevice_t device = argument;
    bool allocates = atomic_fetch_add(&threads_turn, 1) % 2 == 0;
    if (allocates)
        cuCtxSetCurrent(threads_context);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr address = 0;
        nvmlMemory_t memory;
        if (allocates && cuMemAlloc_v2(&address, MIB(50)) != CUDA_SUCCESS)
            return thread_says("an allocation that fits was refused");
        if (nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS || memory.total != MIB(1024) ||
            memory.free > memory.total || memory.used != memory.total - memory.free ||
            (allocates && memory.free > MIB(1024 - 50)))
            return thread_says("figures that cannot be");
        if (allocates && cuMemFree_v2(address) != CUDA_SUCCESS)
            return thread_says("a free failed");
    }
    return NULL;
}

static int play_threads(void)
{
    pthread_t threads[THREADS];
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    expect(cuCtxGetCurrent(&threads_context) == CUDA_SUCCESS);
    nvmlDevice_t device = device_of(0);
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, ask_and_allocate, device) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;
        expect(pthread_join(threads[i], &wrong) == 0);
        expect(!wrong);
    }
    expect(agrees(device));
    return 0;
}

/* GPU_LIMIT_MB=1024 SIMGPU_RESERVED_MB=600: what the card keeps for itself is no part of the limit.
 */
static int play_reserved(void)
{
    CUdeviceptr address;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(ask(device_of(0), &memory) && memory.total == MIB(1024) && memory.used == 0);
    expect(role_begin() == 0);
    expect(cuMemAlloc_v2(&address, MIB(700)) == CUDA_SUCCESS);
    expect(agrees(device_of(0)));
    return 0;
}

/* Prints the total and the reserve of device 0. */
static int play_large(void)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    expect(nvmlDeviceGetMemoryInfo_v2(device_of(0), &memory) == NVML_SUCCESS);
    expect(memory.total == memory.reserved + memory.free + memory.used);
    printf("%llu %llu", memory.total >> 20, memory.reserved >> 20);
    return 0;
}

static int print_totals(void)
{
    nvmlMemory_t memory;
    for (unsigned index = 0; index < GPUS; index++) {
        expect(ask(device_of(index), &memory));
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
        nvmlDevice_t device = device_of_ordinal(ordinal);
        expect(cuDeviceTotalMem_v2(&total, ordinal) == CUDA_SUCCESS);
        expect(ask(device, &memory) && memory.total == total);
        expect(cuCtxCreate_v2(&context, 0, ordinal) == CUDA_SUCCESS && agrees(device));
    }
    return print_totals();
}

/* In a forked child CUDA is as if it had never been called. */
static int play_fork(void)
{
    CUdeviceptr address;
    nvmlMemory_t memory;
    expect(nvmlInit_v2() == NVML_SUCCESS && role_begin() == 0);
    nvmlDevice_t device = device_of(0);
    expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    pid_t child = fork();
    if (child == 0)
        _exit(ask(device, &memory) && memory.total == MIB(1024) && memory.free == MIB(1024) ? 0
                                                                                            : 1);
    expect(role_wait(child) == 0);
    expect(agrees(device));
    return 0;
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
    expect(ask(by_index, &memory) && memory.total == MIB(1024));
    expect(ask(by_uuid, &memory) && memory.total == MIB(1024));
    expect(ask(by_bus, &memory) && memory.total == MIB(1024));
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
    expect(memory_info(device_of(0), &memory) == NVML_SUCCESS);
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
    nvmlDevice_t device = device_of(0);
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
        expect(ask(device_of(index), &memory));
        expect(nvmlDeviceGetAttributes_v2(device_of(index), &attributes) == NVML_SUCCESS);
        expect(attributes.memorySizeMB == memory.total >> 20);
        expect(attributes.multiprocessorCount > 0);
        printf("%llu ", attributes.memorySizeMB);
    }
    return 0;
}

static const struct role roles[] = {
    {"agree", play_agree},         {"late", play_late},
    {"capture", play_capture},     {"threads", play_threads},
    {"devices", play_devices},     {"fork", play_fork},
    {"handles", play_handles},     {"alone", play_alone},
    {"errors", play_errors},       {"missing", play_missing},
    {"instances", play_instances}, {"reserved", play_reserved},
    {"large", play_large},         {0},
};

/* ---- the test ---- */

static struct program program; /* the one started last */

static void assert_plays(const char *role)
{
    program_play(&program, role, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
}

static void test_both_versions_agree_with_cuda_after_every_call(void **state)
{
    (void)state;
    assert_plays("agree");
}

static void test_what_came_back_unseen_is_looked_for(void **state)
{
    (void)state;
    assert_plays("late");
}

static void test_a_capture_goes_on(void **state)
{
    (void)state;
    assert_plays("capture");
}

static void test_threads_with_and_without_a_context_see_the_limit(void **state)
{
    (void)state;
    assert_plays("threads");
}

static void test_a_forked_child_sees_an_untouched_limit(void **state)
{
    (void)state;
    assert_plays("fork");
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

static void test_the_cards_own_reserve_is_no_part_of_a_limit(void **state)
{
    (void)state;
    program_play(&program, "reserved", PROGRAM_LIST("GPU_LIMIT_MB=1024", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    program_play(&program, "large", PROGRAM_LIST("GPU_LIMIT_MB=100%", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8192 0");
    program_play(&program, "large", PROGRAM_LIST("GPU_LIMIT_MB=100G", "SIMGPU_RESERVED_MB=600"));
    program_assert_ok(&program);
    assert_string_equal(program.out, "8792 600");
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

static void test_a_configuration_in_error_leaves_the_figures_alone(void **state)
{
    (void)state;
    program_play(&program, "alone", PROGRAM_LIST("GPU_LIMIT_NVML=yes"));
    program_assert_ok(&program);
    assert_string_equal(program.err, "");
    assert_string_equal(program.out, "8192");
    program_play(&program, "agree", PROGRAM_LIST("GPU_LIMIT_NVML=yes"));
    assert_int_not_equal(program.status, 0);
    assert_non_null(strstr(program.err, "GPU_LIMIT_NVML=\"yes\""));
    assert_non_null(strstr(program.err, "GPU_LIMIT_NVML=limit or real"));
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

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_versions_agree_with_cuda_after_every_call),
        cmocka_unit_test(test_what_came_back_unseen_is_looked_for),
        cmocka_unit_test(test_a_capture_goes_on),
        cmocka_unit_test(test_threads_with_and_without_a_context_see_the_limit),
        cmocka_unit_test(test_a_forked_child_sees_an_untouched_limit),
        cmocka_unit_test(test_a_device_is_the_same_by_index_uuid_and_bus),
        cmocka_unit_test(test_errors_are_nvmls_own),
        cmocka_unit_test(test_names_that_nvml_lacks_are_not_found),
        cmocka_unit_test(test_a_limit_by_ordinal_is_that_of_the_device_cuda_will_make_it),
        cmocka_unit_test(test_other_limits_do_not_ask_for_the_order),
        cmocka_unit_test(test_the_cards_own_reserve_is_no_part_of_a_limit),
        cmocka_unit_test(test_real_leaves_nvml_alone),
        cmocka_unit_test(test_without_cuda_nothing_is_said_and_no_ledger_made),
        cmocka_unit_test(test_a_configuration_in_error_leaves_the_figures_alone),
        cmocka_unit_test(test_without_a_limit_the_figures_are_nvmls_own),
        cmocka_unit_test(test_an_instance_of_a_card_is_no_larger_than_its_limit),
    };
    return count > 1 ? role_play(roles, words[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
