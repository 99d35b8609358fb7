// SPDX-License-Identifier: MIT
//
// The simulated NVML: devices by each name, and figures that agree with the driver's.

#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml_api.h"

static nvmlDevice_t device;

/* Once, in front of the cases that share a process. */
static int nvml_set_up(void **state)
{
    fixture_set_up(state);
    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    return (int)nvmlDeviceGetHandleByIndex_v2(0, &device);
}

/* What NVML lists for a pid; -1: not in the list, -2: there is none. */
static int64_t listed(int pid)
{
    nvmlProcessInfo_v2_t infos[8];
    unsigned count = 8;

    if (nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) != NVML_SUCCESS)
        return -2;
    for (unsigned i = 0; i < count; i++)
        if (infos[i].pid == (unsigned)pid)
            return (int64_t)infos[i].usedGpuMemory;
    return -1;
}

static void test_a_device_is_found_by_each_of_its_names(void **state)
{
    char uuid[96], bus[32], name[96], version[80];
    nvmlDevice_t same;
    nvmlPciInfo_t pci;
    unsigned index = 9, count = 0;
    CUuuid cuda;

    (void)state;
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(nvmlDeviceGetUUID(device, uuid, sizeof uuid), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetUUID(device, uuid, 5), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
    assert_ptr_equal(same, device);
    assert_ok(cuDeviceGetUuid(&cuda, 0));
    for (unsigned i = 0, at = 4; i < 4; i++, at += 2) {
        static const char digits[] = "0123456789abcdef";

        assert_int_equal(uuid[at], digits[(unsigned char)cuda.bytes[i] >> 4]);
        assert_int_equal(uuid[at + 1], digits[cuda.bytes[i] & 15]);
    }
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
    assert_ok(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    assert_string_equal(pci.busIdLegacy, bus);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId(bus, &same), NVML_SUCCESS);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &same), NVML_SUCCESS);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-no", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &same), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
    assert_int_equal(index, 0);
    assert_int_equal(nvmlDeviceGetName(device, name, sizeof name), NVML_SUCCESS);
    assert_string_equal(name, "Simulated GPU");
    assert_int_equal(nvmlSystemGetDriverVersion(version, sizeof version), NVML_SUCCESS);
    assert_string_equal(nvmlErrorString(NVML_ERROR_NOT_FOUND), "Not Found");
}

static void test_memory_info_agrees_with_the_driver(void **state)
{
    nvmlMemory_t first;
    nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
    size_t left, total;
    CUdeviceptr at;

    (void)state;
    assert_ok(cuMemAlloc_v2(&at, 3 * MIB));
    assert_ok(cuMemGetInfo_v2(&left, &total));
    assert_int_equal(nvmlDeviceGetMemoryInfo(device, &first), NVML_SUCCESS);
    assert_int_equal(first.total, total);
    assert_int_equal(first.free, left);
    assert_int_equal(first.used, total - left);
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &second), NVML_SUCCESS);
    assert_int_equal(second.free, left);
    assert_int_equal(second.total, second.reserved + second.free + second.used);
    second.version = 1;
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &second),
                     NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(sizeof first, 24);
    assert_int_equal(sizeof second, 40);
    assert_ok(cuMemFree_v2(at));
}

static void test_the_process_list_counts_before_it_writes(void **state)
{
    nvmlProcessInfo_v1_t one;
    nvmlProcessInfo_v2_t two;
    unsigned count = 0;

    (void)state;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &count, NULL),
                     NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &count, &one), NVML_SUCCESS);
    assert_int_equal(one.pid, getpid());
    assert_int_equal(one.usedGpuMemory, simgpu_process_used(0));
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v2(device, &count, &two), NVML_SUCCESS);
    assert_int_equal(two.usedGpuMemory, one.usedGpuMemory);
    assert_int_equal(two.gpuInstanceId, UINT32_MAX);
    assert_int_equal(sizeof one, 16);
    assert_int_equal(sizeof two, 24);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, NULL, NULL),
                     NVML_ERROR_INVALID_ARGUMENT);
}

static uint64_t device_used(void)
{
    nvmlMemory_t memory;

    return nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS ? memory.used : UINT64_MAX;
}

static void test_managed_memory_counts_once_touched_and_for_the_card_alone(void **state)
{
    int64_t before = listed(getpid());
    uint64_t used = device_used();
    CUdeviceptr at, rest;

    (void)state;
    assert_ok(cuMemAllocManaged(&at, 64 * MIB, CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(device_used(), used);
    assert_ok(cuMemsetD8_v2(at, 1, 64 * MIB));
    assert_ok(cuMemsetD8_v2(at + 3, 1, MIB));
    assert_int_equal(device_used(), used + 64 * MIB);
    assert_int_equal(listed(getpid()), before);
    assert_ok(cuMemFree_v2(at));
    assert_int_equal(device_used(), used);
    assert_int_equal(listed(getpid()), before);
    assert_ok(cuMemAlloc_v2(&rest, 8000 * MIB));
    assert_ok(cuMemAllocManaged(&at, 8192 * MIB, CU_MEM_ATTACH_GLOBAL));
    assert_ok(cuMemsetD8_v2(at, 1, 8192 * MIB)); /* stays on the host */
    assert_int_equal(device_used(), used + 8000 * MIB);
    assert_ok(cuMemFree_v2(at));
    assert_ok(cuMemFree_v2(rest));
}

static void test_memory_that_a_descriptor_alone_keeps_counts_for_the_card_alone(void **state)
{
    CUmemAllocationProp prop = fixture_device_prop();
    int64_t before = listed(getpid()), mine = 32 * (int64_t)MIB;
    CUmemGenericAllocationHandle handle;
    uint64_t used = device_used();
    int descriptor;

    (void)state;
    assert_ok(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    assert_ok(cuMemExportToShareableHandle(&descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_int_equal(listed(getpid()), before + mine);
    assert_ok(cuMemRelease(handle));
    assert_int_equal(listed(getpid()), before);
    assert_int_equal(device_used(), used + 32 * MIB);
    assert_ok(cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)descriptor,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    assert_int_equal(listed(getpid()), before + mine);
    assert_ok(cuMemRelease(handle));
    assert_int_equal(listed(getpid()), before);
    close(descriptor);
    assert_int_equal(simgpu_device_used(0), used); /* which notices that it is closed */
    assert_int_equal(device_used(), used);
    assert_int_equal(listed(getpid()), before);
}

static void test_a_process_is_listed_only_while_it_has_a_context(void **state)
{
    CUmemoryPool pool = fixture_create_pool(0, UINT64_MAX);
    CUcontext context;
    CUdeviceptr at;
    CUstream stream;

    (void)state;
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuMemAllocFromPoolAsync(&at, 100 * MIB, pool, stream));
    assert_int_equal(listed(getpid()), (64 + 128) * MIB);
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(listed(getpid()), -1);
    assert_int_equal(simgpu_process_used(0), 128 * MIB); /* though it still holds the pool's */
    assert_int_equal(device_used(), 128 * MIB);
    assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
    assert_int_equal(listed(getpid()), (64 + 128) * MIB);
    assert_ok(cuMemFree_v2(at));
    assert_ok(cuMemPoolDestroy(pool));
}

static void test_before_init_and_after_shutdown_it_answers_1(void **state)
{
    unsigned count;

    (void)state;
    assert_int_equal(nvmlInitWithFlags(0), NVML_SUCCESS);
    assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetCount(&count), NVML_SUCCESS); /* inits are counted */
    assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlInit(), NVML_SUCCESS);
}

/* ---- in processes of their own ---- */

static int hidden_processes(void)
{
    nvmlProcessInfo_v1_t infos[2];
    unsigned count = 2;
    CUcontext context;

    setenv("SIMGPU_HIDE_PROCESSES", "1", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(nvmlDeviceGetComputeRunningProcesses(device, &count, infos) == NVML_SUCCESS);
    expect(count == 0 && listed(getpid()) == -1);
    expect(device_used() == 64 * MIB);
    return 0;
}

static void test_a_pid_namespace_hides_processes_but_not_what_they_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(hidden_processes), 0);
}

static int hidden_figures(void)
{
    nvmlProcessInfo_v2_t infos[2];
    unsigned count = 2;
    CUcontext context;

    setenv("SIMGPU_HIDE_FIGURES", "1", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) == NVML_SUCCESS);
    expect(count == 1 && infos[0].pid == (unsigned)getpid());
    expect(infos[0].usedGpuMemory == UINT64_MAX && device_used() == 64 * MIB);
    return 0;
}

static void test_a_virtual_machine_may_hide_figures_and_not_processes(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(hidden_figures), 0);
}

static int part_of_a_device(void)
{
    nvmlDeviceAttributes_t attributes;
    nvmlProcessInfo_v2_t process;
    unsigned is_mig = 7, count = 1;
    CUcontext context;
    nvmlDevice_t same;
    char uuid[96];
    int visible;

    setenv("SIMGPU_MIG", "1", 1);
    setenv("SIMGPU_DEVICES", "2", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(1, &device) == NVML_SUCCESS);
    expect(nvmlDeviceIsMigDeviceHandle(device, &is_mig) == NVML_SUCCESS && is_mig == 1);
    expect(nvmlDeviceGetAttributes_v2(device, &attributes) == NVML_SUCCESS);
    expect(attributes.memorySizeMB == 8192 && sizeof attributes == 40);
    expect(nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS);
    expect(strncmp(uuid, "MIG-", 4) == 0);
    expect(nvmlDeviceGetHandleByUUID(uuid, &same) == NVML_SUCCESS && same == device);
    setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
    memcpy(uuid, "GPU", 3);
    expect(nvmlDeviceGetHandleByUUID(uuid, &same) == NVML_ERROR_NOT_FOUND);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&visible) == CUDA_SUCCESS && visible == 1);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, &process) == NVML_SUCCESS);
    expect(count == 1 && process.gpuInstanceId != UINT32_MAX);
    return 0;
}

static void test_a_mig_device_is_named_and_described_as_one(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(part_of_a_device), 0);
}

static int one_of_two_visible(void)
{
    CUcontext context;
    unsigned count;

    setenv("SIMGPU_DEVICES", "2", 1);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 2);
    expect(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    expect(listed(getpid()) == -1 && device_used() == 0);
    expect(nvmlDeviceGetHandleByIndex_v2(1, &device) == NVML_SUCCESS);
    expect(listed(getpid()) == 64 * (int64_t)MIB);
    return 0;
}

static void test_nvml_heeds_no_list_of_visible_devices(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(one_of_two_visible), 0);
}

static void test_a_whole_device_is_no_mig_one(void **state)
{
    nvmlDeviceAttributes_t attributes;
    unsigned is_mig = 7;

    (void)state;
    assert_int_equal(nvmlDeviceIsMigDeviceHandle(device, &is_mig), NVML_SUCCESS);
    assert_int_equal(is_mig, 0);
    assert_int_equal(nvmlDeviceGetAttributes_v2(device, &attributes), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetAttributes_v2(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceIsMigDeviceHandle(NULL, &is_mig), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: children of a process that called cuInit could not. */
        cmocka_unit_test(test_a_pid_namespace_hides_processes_but_not_what_they_use),
        cmocka_unit_test(test_a_virtual_machine_may_hide_figures_and_not_processes),
        cmocka_unit_test(test_a_mig_device_is_named_and_described_as_one),
        cmocka_unit_test(test_nvml_heeds_no_list_of_visible_devices),
        cmocka_unit_test_setup(test_a_device_is_found_by_each_of_its_names, nvml_set_up),
        cmocka_unit_test(test_a_whole_device_is_no_mig_one),
        cmocka_unit_test(test_memory_info_agrees_with_the_driver),
        cmocka_unit_test(test_the_process_list_counts_before_it_writes),
        cmocka_unit_test(test_managed_memory_counts_once_touched_and_for_the_card_alone),
        cmocka_unit_test(test_memory_that_a_descriptor_alone_keeps_counts_for_the_card_alone),
        cmocka_unit_test(test_a_process_is_listed_only_while_it_has_a_context),
        cmocka_unit_test(test_before_init_and_after_shutdown_it_answers_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
