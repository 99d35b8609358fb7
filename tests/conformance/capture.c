// SPDX-License-Identifier: MIT
//
// Which calls a stream capture in global mode forbids.

#include "conformance.h"

/* The answer, what became of the capture, and what its end says. */
#define CAPTURED(_call)                                                                            \
    do {                                                                                           \
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;                              \
        CUgraph graph = NULL;                                                                      \
                                                                                                   \
        QUIET(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));                     \
        report(' ', _call, #_call);                                                                \
        QUIET(cuStreamIsCapturing(stream, &status));                                               \
        NUMBER(status);                                                                            \
        NUMBER(cuStreamEndCapture(stream, &graph));                                                \
        if (graph)                                                                                 \
            QUIET(cuGraphDestroy(graph));                                                          \
        forget();                                                                                  \
    } while (0)

static CUresult relaxed(CUmemoryPool pool)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    QUIET(cuThreadExchangeStreamCaptureMode(&mode));
    CUresult result = cuMemPoolTrimTo(pool, 0);
    QUIET(cuThreadExchangeStreamCaptureMode(&mode));
    return result;
}

static void check_memory(void)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool = NULL;
    CUdeviceptr at = 0, linear = 0;
    size_t free_bytes, total;
    CUipcMemHandle handle;
    cuuint64_t value;
    CUarray array;

    QUIET(cuDeviceGetDefaultMemPool(&pool, 0));
    QUIET(cuMemAlloc_v2(&linear, MIB));
    QUIET(cuArray3DCreate_v2(&array, &desc));
    CAPTURED(cuMemGetInfo_v2(&free_bytes, &total));
    CAPTURED(cuMemAlloc_v2(&at, MIB));
    OUTPUT(at);
    CAPTURED(cuMemAllocManaged(&at, MIB, CU_MEM_ATTACH_GLOBAL));
    CAPTURED(cuMemFree_v2(linear));
    CAPTURED(cuMemAllocAsync(&at, MIB, stream));
    CAPTURED(cuMemFreeAsync(linear, stream));
    CAPTURED(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    CAPTURED(cuMemPoolTrimTo(pool, 0));
    CAPTURED(relaxed(pool));
    CAPTURED(cuDeviceGetMemPool(&pool, 0));
    CAPTURED(cuMemGetMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    CAPTURED(cuArray3DCreate_v2(&array, &desc));
    CAPTURED(cuArrayDestroy(array));
    CAPTURED(cuArray3DGetDescriptor_v2(&desc, array));
    CAPTURED(cuIpcGetMemHandle(&handle, linear));
    QUIET(cuArrayDestroy(array));
    QUIET(cuMemFree_v2(linear));
}

static void check_others(void)
{
    static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
    CUgraph other = NULL;
    CUgraphExec exec = NULL, made;
    CUgraphNode node;
    CUmodule module = NULL;
    CUlibrary library = NULL;
    size_t limit;
    cuuint64_t value;

    QUIET(cuGraphCreate(&other, 0));
    QUIET(cuGraphInstantiateWithFlags(&exec, other, 0));
    CAPTURED(cuGraphAddEmptyNode(&node, other, NULL, 0));
    CAPTURED(cuGraphInstantiateWithFlags(&made, other, 0));
    CAPTURED(cuGraphUpload(exec, stream));
    CAPTURED(cuGraphLaunch(exec, NULL));
    CAPTURED(cuGraphExecDestroy(exec));
    CAPTURED(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
    CAPTURED(cuDeviceGraphMemTrim(0));
    CAPTURED(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
    CAPTURED(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    CAPTURED(cuModuleLoadData(&module, image));
    CAPTURED(cuModuleUnload(module));
    CAPTURED(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    CAPTURED(cuLibraryUnload(library));
    CAPTURED(cuCtxSynchronize());
    CAPTURED(cuStreamSynchronize(stream));
    QUIET(cuGraphExecDestroy(exec));
    QUIET(cuGraphDestroy(other));
}

void check_capture(void)
{
    section("during a stream capture");
    check_memory();
    check_others();
}
