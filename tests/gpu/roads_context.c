/* SPDX-License-Identifier: MIT
 *
 * The roads by contexts: what outlives them, and what they take for themselves.
 */
#include "roads.h"

#include <stdio.h>
#include <string.h>

/* The context goes, and with it what it held, but not what pools and handles hold. */
void roads_walk_reset(struct hoard *hoard)
{
    CUdevice device = 0;
    for (unsigned round = 0; round < 3; round++) {
        struct hoard kept = {0};
        for (unsigned i = 0; i < 3 && roads_wants_more(hoard); i++) {
            uint64_t got = 0;
            CUresult result = i % 2 ? roads_pool(128 * MIB, &got) : roads_vmm(128 * MIB, &got);
            roads_note(&kept, result, got, "a piece");
        }
        hoard->held_bytes += kept.held_bytes;
        roads_must(cu.cuDevicePrimaryCtxReset_v2(device), "cuDevicePrimaryCtxReset");
        roads_must(cu.cuDevicePrimaryCtxRetain(&roads_context, device), "cuDevicePrimaryCtxRetain");
        roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
        for (unsigned i = 0; i < ROADS_STREAMS; i++)
            roads_must(cu.cuStreamCreate(&roads_streams[i], CU_STREAM_NON_BLOCKING),
                       "cuStreamCreate");
    }
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Part of the device's processors as a context of its own, with streams of its own. */
void roads_walk_green(struct hoard *hoard)
{
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext context;
    CUstream stream;
    CUdeviceptr address;
    memset(&resource, 0, sizeof resource);
    roads_must(cu.cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM),
               "cuDeviceGetDevResource");
    roads_must(cu.cuDevResourceGenerateDesc(&description, &resource, 1),
               "cuDevResourceGenerateDesc");
    roads_must(cu.cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
               "cuGreenCtxCreate");
    roads_must(cu.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0),
               "cuGreenCtxStreamCreate");
    roads_must(cu.cuCtxFromGreenCtx(&context, green), "cuCtxFromGreenCtx");
    roads_must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (size_t bytes = 100 * MIB; roads_wants_more(hoard);) {
        bool got = roads_note(hoard, cu.cuMemAllocAsync(&address, bytes, stream), bytes,
                              "cuMemAllocAsync");
        got = roads_note(hoard, cu.cuMemAlloc_v2(&address, bytes), bytes, "cuMemAlloc") && got;
        if (!got && bytes > MIB)
            bytes /= 2;
    }
}

/* Contexts are worth some hundred MiB each. */
void roads_walk_contexts(struct hoard *hoard)
{
    enum { CONTEXTS = 8 };
    CUcontext context;
    for (unsigned i = 0; i < CONTEXTS && roads_wants_more(hoard); i++)
        roads_note(hoard, cu.cuCtxCreate_v2(&context, 0, 0), 0, "cuCtxCreate");
    roads_must(cu.cuCtxSetCurrent(roads_context), "cuCtxSetCurrent");
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

/* Variables of code that is loaded, one module after another. */
CUresult roads_module(size_t bytes, uint64_t *got_bytes)
{
    CUmodule module;
    char text[256];
    *got_bytes = bytes;
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .global .align 4 .b8 big[%zu];\n"
             ".visible .entry k(.param .u64 p){ ret; }\n",
             bytes);
    return cu.cuModuleLoadData(&module, text);
}

/* Memory for the stack of each thread that the device can run, taken at once. */
void roads_walk_stack(struct hoard *hoard)
{
    size_t bytes = 12 << 10;
    while (bytes > 0 &&
           !roads_note(hoard, cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes), 0, "cuCtxSetLimit"))
        bytes -= 512;
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}
