// SPDX-License-Identifier: MIT
//
// Contexts, their limits, and what goes with them.

#include "conformance.h"

static size_t limit_of(CUlimit limit)
{
    size_t value = SENTINEL;

    QUIET(cuCtxGetLimit(&value, limit));
    return value;
}

void check_limits(void)
{
    size_t value = SENTINEL;

    section("limits of a context");
    NUMBER(limit_of(CU_LIMIT_STACK_SIZE));
    NUMBER(limit_of(CU_LIMIT_MALLOC_HEAP_SIZE));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    NUMBER(limit_of(CU_LIMIT_STACK_SIZE));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 20));
    NUMBER(limit_of(CU_LIMIT_STACK_SIZE));
    CALL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * MIB));
    NUMBER(limit_of(CU_LIMIT_MALLOC_HEAP_SIZE));
    CALL(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 64 * MIB));
    CALL(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB));
    CALL(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, MIB));
    CALL(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    CALL(cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 1));
    CALL(cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED));
    CALL(cuCtxSetLimit(CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 1));
    value = SENTINEL;
    CALL(cuCtxSetLimit((CUlimit)99, 0));
    CALL(cuCtxGetLimit(&value, (CUlimit)99));
    OUTPUT(value);
    CALL(cuCtxSetFlags(0));
    CALL(cuCtxSetFlags(7));
    CALL(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_AUTO));
    CALL(cuDevicePrimaryCtxSetFlags_v2(0, 0x8000));
    CALL(cuDevicePrimaryCtxSetFlags_v2(99, 0));
}

static bool primary_is_active(void)
{
    unsigned flags;
    int active = 0;

    QUIET(cuDevicePrimaryCtxGetState(0, &flags, &active));
    return active != 0;
}

/* What green contexts cost is not told: it depends on those that were there before. */
static void check_green(void)
{
    CUdevResource all, part;
    CUdevResourceDesc desc;
    CUgreenCtx green = (CUgreenCtx)SENTINEL;
    CUcontext context;
    CUdeviceptr at;
    CUstream made;
    unsigned groups = 1;

    section("green contexts");
    CALL(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 16));
    NUMBER_MODEL(part.sm.smCount);
    CALL(cuDevResourceGenerateDesc(&desc, &part, 1));
    CALL(cuGreenCtxCreate(&green, desc, 0, 0));
    OUTPUT(green);
    NUMBER(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    forget();
    CALL(cuCtxFromGreenCtx(&context, green));
    NUMBER(cuGreenCtxStreamCreate(&made, green, CU_STREAM_NON_BLOCKING, 0));
    NUMBER(cuStreamDestroy_v2(made));
    forget();
    CALL(cuCtxPushCurrent_v2(context));
    CALL(cuMemAlloc_v2(&at, 50 * MIB));
    CALL(cuMemFree_v2(at));
    CALL(cuCtxPopCurrent_v2(&context));
    NUMBER(cuGreenCtxDestroy(green));
    forget();
    CALL(cuGreenCtxDestroy(NULL));
}

/* The interface of CUDA 2.x, in a context of its own. */
static void check_oldest(void)
{
    CUcontext context = NULL;
    CUdeviceptr_v1 at = SENTINEL;
    unsigned pitch = SENTINEL;

    section("the interface of CUDA 2.x");
    CALL_ABOUT(cuCtxCreate(&context, 0, 0));
    CALL(cuMemAlloc(&at, 3 * (unsigned)MIB));
    CALL(cuMemFree(at));
    CALL(cuMemAllocPitch(&at, &pitch, 1000, 5000, 4));
    CALL(cuMemFree(at));
    CALL_ABOUT(cuCtxDestroy(context));
    section("no context");
}

void check_contexts(void)
{
    static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".visible .global .align 4 .b8 big[67108864];\n";
    CUcontext context = NULL, popped, unmade = (CUcontext)SENTINEL;
    CUdeviceptr at, freed_by_other;
    CUmodule module;

    check_green();
    section("another context");
    CALL(cuMemAlloc_v2(&freed_by_other, 50 * MIB));
    CALL_ABOUT(cuCtxCreate_v2(&context, 0, 0));
    CALL(cuMemAlloc_v2(&at, 50 * MIB));
    CALL(cuMemFree_v2(freed_by_other));
    CALL(cuModuleLoadData(&module, image));
    CALL_MODEL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    CALL(cuCtxPopCurrent_v2(&popped));
    NUMBER(popped == context);
    CALL_ABOUT(cuCtxDestroy_v2(context));
    CALL(cuMemFree_v2(at));
    CALL(cuCtxDestroy_v2(context));
    CALL(cuCtxCreate_v2(&unmade, 0, 99));
    OUTPUT(unmade);
    check_oldest();
    CALL(cuCtxSetCurrent(NULL));
    at = SENTINEL;
    CALL(cuMemAlloc_v2(&at, MIB));
    OUTPUT(at);
    CALL(cuMemFree_v2(0));
    CALL(cuMemFree_v2(12345));
    QUIET(cuDevicePrimaryCtxRetain(&context, 0));
    QUIET(cuDevicePrimaryCtxRelease_v2(0));
    CALL(cuCtxSetCurrent(context));
}

/* What a reset of the primary context leaves: seen from another one, which is there all the time.
 */
void check_reset(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    cuuint64_t keep_all = UINT64_MAX, keep_none = 0;
    CUmemGenericAllocationHandle handle;
    CUcontext primary, other;
    CUdeviceptr linear, async;
    size_t free_bytes, total;
    CUmemoryPool pool;

    section("a reset of the primary context");
    QUIET(cuDeviceGetDefaultMemPool(&pool, 0));
    QUIET(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    QUIET(cuCtxGetCurrent(&primary));
    CALL(cuMemAlloc_v2(&linear, 50 * MIB));
    CALL(cuMemAllocAsync(&async, 100 * MIB, stream));
    CALL(cuMemFreeAsync(async, stream));
    CALL(cuMemCreate(&handle, 32 * MIB, &prop, 0));
    CALL_ABOUT(cuCtxCreate_v2(&other, 0, 0));
    CALL_ABOUT(cuDevicePrimaryCtxReset_v2(0));
    NUMBER(primary_is_active());
    CALL(cuMemPoolTrimTo(pool, 0));
    CALL(cuMemRelease(handle));
    QUIET(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_none));
    CALL(cuMemFree_v2(linear));
    CALL(cuCtxSetCurrent(primary));
    CALL(cuMemGetInfo_v2(&free_bytes, &total));
    OUTPUT(free_bytes);
    CALL(cuMemAlloc_v2(&linear, MIB));
    CALL(cuCtxDestroy_v2(other));
}
