// SPDX-License-Identifier: MIT
//
// cuMemAlloc and its kin, and what lies at an address.

#include "conformance.h"

#include <stdio.h>

#define MANY 1000u

static CUdeviceptr many[MANY];

void check_before_start(void)
{
    size_t free_bytes = SENTINEL, total = SENTINEL;
    CUdeviceptr at = SENTINEL;
    CUarray array = (CUarray)SENTINEL;
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

    section("before cuInit");
    CALL(cuMemAlloc_v2(&at, MIB));
    OUTPUT(at);
    CALL(cuMemFree_v2(0));
    CALL(cuMemGetInfo_v2(&free_bytes, &total));
    OUTPUT(free_bytes);
    total = SENTINEL;
    CALL(cuDeviceTotalMem_v2(&total, 0));
    OUTPUT(total);
    CALL(cuArray3DCreate_v2(&array, &desc));
    OUTPUT(array);
}

static void check_many(unsigned count, uint64_t bytes)
{
    CUresult result = CUDA_SUCCESS;
    char text[64];

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = cuMemAlloc_v2(&many[i], bytes);
    snprintf(text, sizeof text, "cuMemAlloc_v2, %u times %u bytes", count, (unsigned)bytes);
    report(' ', result, text);
    for (unsigned i = 0; i < count; i++) {
        QUIET(cuMemFree_v2(many[i]));
        many[i] = 0;
    }
    report(' ', CUDA_SUCCESS, "all of them freed");
}

/* How many 2 MiB blocks live allocations touch. */
static uint8_t touched[1u << 16];
static uint64_t blocks;

static void touch(CUdeviceptr at, uint64_t bytes, int change)
{
    for (uint64_t block = at >> 21; block <= (at + bytes - 1) >> 21; block++) {
        uint8_t *count = &touched[block % sizeof touched];

        blocks -= *count != 0;
        *count = (uint8_t)(*count + change);
        blocks += *count != 0;
    }
}

/* Allocates and frees at random, and counts how often the device's figure is not those blocks. */
static void check_block_rule(void)
{
    static uint64_t bytes[300];
    uint64_t random = 1, wrong = 0;
    size_t free_first = 0, free_bytes = 0, total = 0;

    QUIET(cuMemGetInfo_v2(&free_first, &total));
    for (unsigned step = 0; step < 3000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned i = (unsigned)(random >> 33) % 300u;

        if (many[i]) {
            touch(many[i], bytes[i], -1);
            QUIET(cuMemFree_v2(many[i]));
            many[i] = 0;
        } else {
            bytes[i] = (random >> 40) % (3 * MIB) + 1;
            if (cuMemAlloc_v2(&many[i], bytes[i]) == CUDA_SUCCESS)
                touch(many[i], bytes[i], 1);
        }
        if (step % 50 == 0) {
            QUIET(cuMemGetInfo_v2(&free_bytes, &total));
            wrong += free_first - free_bytes != blocks * 2 * MIB;
        }
    }
    for (unsigned i = 0; i < 300; i++)
        QUIET(cuMemFree_v2(many[i]));
    NUMBER(wrong);
    report(' ', CUDA_SUCCESS, "all of them freed");
}

void check_linear(void)
{
    CUdeviceptr at, other, third;

    section("linear memory");
    CALL(cuMemAlloc_v2(&at, 1));
    CALL(cuMemAlloc_v2(&other, 1 * MIB));
    CALL(cuMemAlloc_v2(&third, 1 * MIB + 1));
    CALL(cuMemFree_v2(at));
    CALL(cuMemFree_v2(other));
    CALL(cuMemFree_v2(third));
    CALL(cuMemAlloc_v2(&at, 2 * MIB));
    CALL(cuMemFree_v2(at));
    CALL(cuMemAlloc_v2(&at, 2 * MIB + 1));
    CALL(cuMemFree_v2(at));
    CALL(cuMemAlloc_v2(&at, 1024 * MIB));
    CALL(cuMemFree_v2(at + 1));
    CALL(cuMemFree_v2(at));
    CALL(cuMemFree_v2(at));
    CALL(cuMemFree_v2(0));
    CALL(cuMemFree_v2(12345));
    check_many(1000, 4096);
    check_many(20, 700 * 1024);
    check_many(10, 3 * MIB / 2);
    check_block_rule();

    section("linear memory that cannot be");
    at = SENTINEL;
    CALL(cuMemAlloc_v2(&at, 0));
    OUTPUT(at);
    at = SENTINEL;
    CALL(cuMemAlloc_v2(&at, 64 * TIB));
    OUTPUT(at);
    at = SENTINEL;
    CALL(cuMemAlloc_v2(&at, UINT64_MAX));
    OUTPUT(at);
    CALL(cuMemAlloc_v2(NULL, MIB));
}

void check_pitch(void)
{
    CUdeviceptr at = SENTINEL;
    size_t pitch = SENTINEL;

    section("pitch");
    CALL(cuMemAllocPitch_v2(&at, &pitch, 1000, 5000, 4));
    NUMBER(pitch);
    CALL(cuMemFree_v2(at));
    at = pitch = SENTINEL;
    CALL(cuMemAllocPitch_v2(&at, &pitch, 1000, 5000, 3));
    OUTPUT(at);
    OUTPUT(pitch);
    at = pitch = SENTINEL;
    CALL(cuMemAllocPitch_v2(&at, &pitch, 1000, TIB, 4));
    OUTPUT(at);
    OUTPUT(pitch);
    CALL(cuMemAllocPitch_v2(&at, &pitch, 0, 5000, 4));
}

void check_managed(void)
{
    CUdeviceptr at = SENTINEL;

    /* No figures: it takes memory when it is touched, and what it is charged before is policy. */
    section("managed memory that nothing touches");
    NUMBER(cuMemAllocManaged(&at, 64 * MIB, CU_MEM_ATTACH_GLOBAL));
    NUMBER(cuMemFree_v2(at));
    forget();
    at = SENTINEL;
    CALL(cuMemAllocManaged(&at, MIB, 0));
    OUTPUT(at);
    at = SENTINEL;
    CALL(cuMemAllocManaged(&at, 0, CU_MEM_ATTACH_GLOBAL));
    OUTPUT(at);
}

void check_queries(void)
{
    CUdeviceptr at, base = SENTINEL;
    size_t bytes = SENTINEL, total = SENTINEL;
    unsigned kind = SENTINEL, managed = SENTINEL;

    section("what lies at an address");
    QUIET(cuMemAlloc_v2(&at, 3 * MIB));
    forget();
    CALL(cuMemGetAddressRange_v2(&base, &bytes, at + 77));
    NUMBER(base == at);
    NUMBER(bytes);
    CALL(cuMemGetAddressRange_v2(&base, NULL, at));
    CALL(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    NUMBER(kind);
    CALL(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    NUMBER(managed);
    CALL(cuMemFree_v2(at));
    base = bytes = SENTINEL;
    CALL(cuMemGetAddressRange_v2(&base, &bytes, at));
    OUTPUT(base);
    OUTPUT(bytes);
    CALL(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    CALL(cuDeviceTotalMem_v2(&total, 99));
    OUTPUT(total);
    CALL(cuMemGetInfo_v2(NULL, NULL));
}
