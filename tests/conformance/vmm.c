// SPDX-License-Identifier: MIT
//
// Virtual memory management.

#include "conformance.h"

#include <unistd.h>

static CUmemAllocationProp on_device(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
}

static void check_mapping(void)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp prop = on_device();
    CUmemGenericAllocationHandle handle, same;
    CUdeviceptr at;

    CALL(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    CALL(cuMemAddressReserve(&at, 128 * MIB, 0, 0, 0));
    CALL(cuMemMap(at, 32 * MIB, 0, handle, 0));
    CALL(cuMemMap(at + 32 * MIB, 32 * MIB, 0, handle, 0));
    CALL(cuMemSetAccess(at, 64 * MIB, &access, 1));
    CALL(cuMemSetAccess(at, 16 * MIB, &access, 1));
    CALL(cuMemRelease(handle));
    CALL(cuMemRelease(handle));
    CALL(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)at));
    NUMBER(same == handle);
    CALL(cuMemUnmap(at, 16 * MIB));
    CALL(cuMemUnmap(at, 64 * MIB));
    CALL(cuMemUnmap(at, 64 * MIB));
    CALL(cuMemRelease(same));
    CALL(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    CALL(cuMemMap(at, 32 * MIB, 2 * MIB, handle, 0));
    CALL(cuMemMap(at, 2 * MIB, 0, handle, 0));
    CALL(cuMemMap(at + 4096, 32 * MIB, 0, handle, 0));
    CALL(cuMemMap(at, 32 * MIB, 0, handle, 0));
    CALL(cuMemAddressFree(at, 128 * MIB));
    CALL(cuMemFree_v2(at));
    CALL(cuMemRelease(handle));
    CALL(cuMemUnmap(at, 128 * MIB));
    CALL(cuMemAddressFree(at, 128 * MIB));
}

static void check_sharing(void)
{
    CUmemAllocationProp prop = on_device();
    CUmemGenericAllocationHandle handle, imported = SENTINEL;
    int descriptor = -1;

    CALL(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    CALL(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      0));
    CALL(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    NUMBER(imported == handle);
    CALL(cuMemRelease(handle));
    CALL(cuMemRelease(imported));
    CALL((CUresult)close(descriptor));
}

void check_vmm(void)
{
    CUmemAllocationProp prop = on_device();
    CUmemGenericAllocationHandle handle = SENTINEL;

    section("virtual memory management");
    check_mapping();
    check_sharing();
    CALL(cuMemCreate(&handle, 1000, &prop, 0));
    CALL(cuMemCreate(&handle, 0, &prop, 0));
    CALL(cuMemCreate(&handle, 64 * TIB, &prop, 0));
    prop.location.id = 99;
    CALL(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    CALL(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    handle = SENTINEL;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    CALL(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    CALL(cuMemRelease(handle));
    CALL(cuMemRelease(0));
}
