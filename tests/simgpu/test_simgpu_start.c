// SPDX-License-Identifier: MIT
//
// The simulated driver before cuInit, across fork, and with the devices that the environment
// describes. The program itself never calls cuInit until the last case: each case is a child
// process.

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_api.h"

static int before_init(void)
{
    CUdeviceptr at = 7;
    size_t left = 7, total = 7, pitch = 7;
    CUcontext context;
    int version, count;

    expect(cuMemAlloc_v2(&at, 0) == CUDA_ERROR_NOT_INITIALIZED && at == 0);
    at = 7;
    expect(cuMemAllocPitch_v2(&at, &pitch, 1000, 10, 4) == CUDA_ERROR_NOT_INITIALIZED);
    expect(at == 0 && pitch == 0);
    at = 7;
    expect(cuMemAllocManaged(&at, 10, 1) == CUDA_ERROR_NOT_INITIALIZED && at == 0);
    at = 7;
    expect(cuMemAllocAsync(&at, 10, NULL) == CUDA_ERROR_NOT_INITIALIZED && at == 0);
    expect(cuMemGetInfo_v2(&left, &total) == CUDA_ERROR_NOT_INITIALIZED && !left && !total);
    total = 7;
    expect(cuDeviceTotalMem_v2(&total, 0) == CUDA_ERROR_NOT_INITIALIZED && !total);
    expect(cuMemFree_v2(0) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuDriverGetVersion(&version) == CUDA_SUCCESS);
    expect(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    expect(cuInit(0) == CUDA_SUCCESS && cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 1);
    expect(simgpu_process_used(0) == 0);
    return 0;
}

static void test_before_init_everything_answers_3(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(before_init), 0);
}

static int after_parents_init(void)
{
    CUdevice device;
    size_t left = 7;

    expect(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED);
    expect(cuMemGetInfo_v2(&left, NULL) == CUDA_ERROR_NOT_INITIALIZED && !left);
    expect(cuMemFree_v2(0) == CUDA_ERROR_NOT_INITIALIZED);
    expect(simgpu_process_used(0) == 0);
    expect(simgpu_device_used(0) >= 64 * MIB); /* the parent's */
    return 0;
}

static int init_and_fork(void)
{
    CUcontext context;

    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    return fixture_run_child(after_parents_init);
}

static void test_a_child_of_an_initialised_process_is_left_without(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(init_and_fork), 0);
}

static int look_and_fork(void)
{
    expect(simgpu_device_used(0) == 0); /* opens the state without cuInit */
    return fixture_run_child(before_init);
}

static void test_a_child_of_another_process_may_init_itself(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(look_and_fork), 0);
}

static int many_devices(void)
{
    static const char *const orders[] = {"2,0", "2,0,9,1", " 2, 0", "1,x"};
    static const int firsts[] = {3, 3, 3, 2};
    static const int counts[] = {2, 2, 2, 1};
    CUuuid uuid, other;
    char bus[16], wanted[16];
    CUdevice device;
    int count;
    size_t total;
    unsigned i = (unsigned)atoi(getenv("CASE"));

    setenv("SIMGPU_DEVICES", "3", 1);
    setenv("SIMGPU_PROFILE", "h200", 1);
    setenv("CUDA_VISIBLE_DEVICES", orders[i], 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == counts[i]);
    expect(cuDeviceGetPCIBusId(bus, sizeof bus, 0) == CUDA_SUCCESS);
    snprintf(wanted, sizeof wanted, "0000:%02X:00.0", (unsigned)firsts[i]);
    expect(strcmp(bus, wanted) == 0);
    expect(cuDeviceGetByPCIBusId(&device, bus) == CUDA_SUCCESS && device == 0);
    expect(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 143771 * MIB);
    expect(cuDeviceGet(&device, count) == CUDA_ERROR_INVALID_DEVICE);
    expect(cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
    if (count < 2)
        return 0;
    expect(cuDeviceGetUuid_v2(&uuid, 0) == CUDA_SUCCESS && cuDeviceGetUuid(&other, 1) == 0);
    expect(memcmp(&uuid, &other, sizeof uuid) != 0);
    CUcontext context;
    CUdeviceptr at;
    expect(cuCtxCreate_v2(&context, 0, 1) == CUDA_SUCCESS); /* ordinal 1 is gpu 0 */
    expect(cuMemAlloc_v2(&at, 100) == CUDA_SUCCESS);
    expect(simgpu_process_used(0) / MIB == 520 + 3 + 5); /* cuInit's and the context's with it */
    expect(simgpu_process_used(2) / MIB == 3);
    return 0;
}

static void test_visible_devices_are_numbered_in_their_order(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char text[4];

        snprintf(text, sizeof text, "%d", i);
        setenv("CASE", text, 1);
        assert_int_equal(fixture_run_child(many_devices), 0);
    }
}

static int visible_by_uuid(void)
{
    nvmlDevice_t device;
    char uuid[96], bus[16];
    nvmlPciInfo_t pci;
    int count;

    setenv("SIMGPU_DEVICES", "3", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    expect(nvmlDeviceGetHandleByIndex_v2(1, &device) == NVML_SUCCESS);
    expect(nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS);
    expect(nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS);
    if (getenv("SHORT"))
        uuid[12] = 0;
    setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 1);
    expect(cuDeviceGetPCIBusId(bus, sizeof bus, 0) == CUDA_SUCCESS);
    expect(strcmp(bus, pci.busIdLegacy) == 0);
    return 0;
}

static void test_visible_devices_are_found_by_uuid(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(visible_by_uuid), 0);
    setenv("SHORT", "1", 1);
    assert_int_equal(fixture_run_child(visible_by_uuid), 0);
}

static int visible_by_two_uuids(void)
{
    char uuids[2][96], list[200], bus[16];
    nvmlDevice_t device;
    int count;

    setenv("SIMGPU_DEVICES", "3", 1);
    expect(nvmlInit_v2() == NVML_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        expect(nvmlDeviceGetHandleByIndex_v2(2 - i, &device) == NVML_SUCCESS);
        expect(nvmlDeviceGetUUID(device, uuids[i], sizeof uuids[i]) == NVML_SUCCESS);
    }
    snprintf(list, sizeof list, "%s,%s", uuids[0], uuids[1]);
    setenv("CUDA_VISIBLE_DEVICES", list, 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2);
    expect(cuDeviceGetPCIBusId(bus, sizeof bus, 0) == CUDA_SUCCESS);
    expect(strcmp(bus, "0000:03:00.0") == 0);
    expect(cuDeviceGetPCIBusId(bus, sizeof bus, 1) == CUDA_SUCCESS);
    expect(strcmp(bus, "0000:02:00.0") == 0);
    return 0;
}

static void test_a_list_of_uuids_has_an_order_too(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(visible_by_two_uuids), 0);
}

static int none_visible(void)
{
    setenv("SIMGPU_DEVICES", "3", 1);
    setenv("CUDA_VISIBLE_DEVICES", getenv("NONE"), 1);
    expect(cuInit(0) == CUDA_ERROR_NO_DEVICE);
    return 0;
}

static void test_without_a_visible_device_init_answers_100(void **state)
{
    static const char *const none[] = {"", "-1", "NoDevFiles", "3", "1,1", "GPU-"};

    (void)state;
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++) {
        setenv("NONE", none[i], 1);
        assert_int_equal(fixture_run_child(none_visible), 0);
    }
}

static int no_state(void)
{
    setenv("SIMGPU_STATE", "/proc/simgpu/none", 1);
    expect(cuInit(0) == CUDA_ERROR_OPERATING_SYSTEM);
    expect(simgpu_device_used(0) == 0);
    expect(nvmlInit_v2() == NVML_ERROR_UNKNOWN);
    return 0;
}

static int old_interface(void)
{
    CUdeviceptr_v1 at = 7;
    CUcontext context;
    CUdeviceptr wide;

    setenv("SIMGPU_PROFILE", "h200", 1);
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuCtxCreate(&context, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    expect(cuMemAlloc(&at, 1) == CUDA_ERROR_INVALID_CONTEXT && at == 0);
    expect(cuMemFree(0) == CUDA_ERROR_INVALID_CONTEXT);
    expect(cuMemAlloc_v2(&wide, 1) == CUDA_SUCCESS);
    return 0;
}

static void test_an_h200_has_no_place_for_32_bit_addresses(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(old_interface), 0);
}

static void test_a_state_that_cannot_be_had_answers_304(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(no_state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_init_everything_answers_3),
        cmocka_unit_test(test_a_child_of_an_initialised_process_is_left_without),
        cmocka_unit_test(test_a_child_of_another_process_may_init_itself),
        cmocka_unit_test(test_visible_devices_are_numbered_in_their_order),
        cmocka_unit_test(test_visible_devices_are_found_by_uuid),
        cmocka_unit_test(test_a_list_of_uuids_has_an_order_too),
        cmocka_unit_test(test_without_a_visible_device_init_answers_100),
        cmocka_unit_test(test_an_h200_has_no_place_for_32_bit_addresses),
        cmocka_unit_test(test_a_state_that_cannot_be_had_answers_304),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
