/* SPDX-License-Identifier: MIT
 *
 * What the parts of roads.c share: the driver's functions, and the count of what a road has taken.
 */
#ifndef GPU_ROADS_H
#define GPU_ROADS_H

#include <cuda.h>
#include <cudaTypedefs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)

/* Looked up as most programs do it, so the program needs no driver to be linked. What a driver
 * lacks answers CUDA_ERROR_NOT_SUPPORTED, by which the road is skipped. */
#define ROADS_CALLS(CALL)                                                                          \
    CALL(cuInit, cuInit_v2000)                                                                     \
    CALL(cuDeviceGet, cuDeviceGet_v2000)                                                           \
    CALL(cuDeviceGetAttribute, cuDeviceGetAttribute_v2000)                                         \
    CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain_v7000)                                 \
    CALL(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v11000)                               \
    CALL(cuCtxSetCurrent, cuCtxSetCurrent_v4000)                                                   \
    CALL(cuCtxSynchronize, cuCtxSynchronize_v2000)                                                 \
    CALL(cuCtxCreate_v2, cuCtxCreate_v3020)                                                        \
    CALL(cuCtxDestroy_v2, cuCtxDestroy_v4000)                                                      \
    CALL(cuCtxFromGreenCtx, cuCtxFromGreenCtx_v12040)                                              \
    CALL(cuDeviceGetDevResource, cuDeviceGetDevResource_v12040)                                    \
    CALL(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc_v12040)                              \
    CALL(cuGreenCtxCreate, cuGreenCtxCreate_v12040)                                                \
    CALL(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate_v12050)                                    \
    CALL(cuModuleLoadData, cuModuleLoadData_v2000)                                                 \
    CALL(cuModuleGetFunction, cuModuleGetFunction_v2000)                                           \
    CALL(cuLibraryLoadData, cuLibraryLoadData_v12000)                                              \
    CALL(cuLibraryGetGlobal, cuLibraryGetGlobal_v12000)                                            \
    CALL(cuLaunchKernel, cuLaunchKernel_v4000)                                                     \
    CALL(cuCtxSetLimit, cuCtxSetLimit_v3010)                                                       \
    CALL(cuMemAlloc_v2, cuMemAlloc_v3020)                                                          \
    CALL(cuMemAllocPitch_v2, cuMemAllocPitch_v3020)                                                \
    CALL(cuMemAllocManaged, cuMemAllocManaged_v6000)                                               \
    CALL(cuMemFree_v2, cuMemFree_v3020)                                                            \
    CALL(cuMemsetD8_v2, cuMemsetD8_v3020)                                                          \
    CALL(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v12020)                                         \
    CALL(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange_v11070)                      \
    CALL(cuLaunchHostFunc, cuLaunchHostFunc_v10000)                                                \
    CALL(cuMemHostAlloc, cuMemHostAlloc_v2020)                                                     \
    CALL(cuMemAllocAsync, cuMemAllocAsync_v11020)                                                  \
    CALL(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_v11020)                                  \
    CALL(cuMemFreeAsync, cuMemFreeAsync_v11020)                                                    \
    CALL(cuMemPoolCreate, cuMemPoolCreate_v11020)                                                  \
    CALL(cuMemPoolDestroy, cuMemPoolDestroy_v11020)                                                \
    CALL(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool_v13000)                                    \
    CALL(cuMemPoolSetAttribute, cuMemPoolSetAttribute_v11020)                                      \
    CALL(cuMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle_v11020)                \
    CALL(cuMemCreate, cuMemCreate_v10020)                                                          \
    CALL(cuMemRelease, cuMemRelease_v10020)                                                        \
    CALL(cuMemExportToShareableHandle, cuMemExportToShareableHandle_v10020)                        \
    CALL(cuMemAddressReserve, cuMemAddressReserve_v10020)                                          \
    CALL(cuMemMap, cuMemMap_v10020)                                                                \
    CALL(cuMemSetAccess, cuMemSetAccess_v10020)                                                    \
    CALL(cuMemMapArrayAsync, cuMemMapArrayAsync_v11010)                                            \
    CALL(cuArrayCreate_v2, cuArrayCreate_v3020)                                                    \
    CALL(cuArray3DCreate_v2, cuArray3DCreate_v3020)                                                \
    CALL(cuArrayDestroy, cuArrayDestroy_v2000)                                                     \
    CALL(cuMipmappedArrayCreate, cuMipmappedArrayCreate_v5000)                                     \
    CALL(cuStreamCreate, cuStreamCreate_v2000)                                                     \
    CALL(cuStreamSynchronize, cuStreamSynchronize_v2000)                                           \
    CALL(cuStreamBeginCapture_v2, cuStreamBeginCapture_v10010)                                     \
    CALL(cuStreamEndCapture, cuStreamEndCapture_v10000)                                            \
    CALL(cuGraphCreate, cuGraphCreate_v10000)                                                      \
    CALL(cuGraphDestroy, cuGraphDestroy_v10000)                                                    \
    CALL(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode_v11040)                                    \
    CALL(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode_v11040)                                      \
    CALL(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags_v11040)                          \
    CALL(cuGraphExecUpdate_v2, cuGraphExecUpdate_v12000)                                           \
    CALL(cuGraphExecDestroy, cuGraphExecDestroy_v10000)                                            \
    CALL(cuGraphLaunch, cuGraphLaunch_v10000)                                                      \
    CALL(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim_v11040)                                        \
    CALL(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute_v11040)

struct roads_driver {
#define ROADS_MEMBER(_symbol, _pfn) PFN_##_pfn _symbol;
    ROADS_CALLS(ROADS_MEMBER)
#undef ROADS_MEMBER
};
extern struct roads_driver cu;

enum { ROADS_STREAMS = 8, ROADS_ENOUGH_REFUSALS = 64 };

/* A road that gets this far has escaped, and need not take the card. */
#define ROADS_CAP_BYTES (3072 * MIB)

struct hoard {
    uint64_t held_bytes; /* by the road's own belief */
    unsigned refusals;
    unsigned in_a_row;
    int got_after; /* of pieces asked for over the limit; -1: that was not tried */
};

extern CUcontext roads_context;
extern CUstream roads_streams[ROADS_STREAMS];

/* Takes one piece, never to give it back; how much it got. */
typedef CUresult roads_take(size_t bytes, uint64_t *got_bytes);

/* Whether to go on: not refused often enough, not at the cap, not out of time. */
bool roads_wants_more(const struct hoard *hoard);
/* Notes how a piece went; anything but success and out-of-memory ends the program. */
bool roads_note(struct hoard *hoard, CUresult result, uint64_t got_bytes, const char *what);
/* Pieces from the largest down to the smallest, until refused often enough. */
void roads_take_all(struct hoard *hoard, roads_take *take, size_t largest, size_t smallest);
void roads_must(CUresult result, const char *what);
/* Ends the program as skipped. */
_Noreturn void roads_skip(const char *why);
/* As must, for what an older driver refuses as invalid. */
void roads_must_have(CUresult result, const char *what);
/* Context and streams, noted as refused if they do not fit. */
bool roads_start_context(struct hoard *hoard);
/* What of the images built by nvcc has that name; ends the program as skipped if there is none. */
const void *roads_image(const char *name);
uint64_t roads_graph_bytes(void);
CUmemoryPool roads_new_pool(CUmemAllocationType type, CUmemLocationType location,
                            CUmemAllocationHandleType handles);
CUresult roads_create(size_t bytes, CUmemAllocationHandleType handles,
                      CUmemGenericAllocationHandle *handle);

/* roads_memory.c */
roads_take roads_linear, roads_pitch, roads_managed, roads_managed_pool, roads_managed_pool_here,
    roads_managed_pool_default, roads_pageable, roads_linear_exported, roads_vmm_exported_twin,
    roads_async, roads_pool, roads_pools, roads_vmm, roads_vmm_mapped, roads_vmm_released,
    roads_vmm_exported, roads_vmm_in_array, roads_array, roads_array_tiny, roads_array_3d,
    roads_array_mipmapped, roads_array_layered;
void roads_walk_fragments(struct hoard *hoard);
void roads_walk_pool_exported(struct hoard *hoard);
void roads_walk_freed_later(struct hoard *hoard);

/* roads_context.c */
void roads_walk_reset(struct hoard *hoard);
void roads_walk_green(struct hoard *hoard);
void roads_walk_contexts(struct hoard *hoard);
void roads_walk_context_churn(struct hoard *hoard);
void roads_walk_retain(struct hoard *hoard);

/* roads_overhead.c */
roads_take roads_module;
void roads_walk_stack(struct hoard *hoard);
void roads_walk_streams(struct hoard *hoard);
void roads_walk_heap(struct hoard *hoard);
void roads_walk_late_local(struct hoard *hoard);
void roads_walk_late_global(struct hoard *hoard);
void roads_walk_late_fatbin(struct hoard *hoard);

/* roads_graph.c */
roads_take roads_graph, roads_graph_captured, roads_graph_auto_free;
void roads_walk_graph_untrimmed(struct hoard *hoard);
void roads_walk_graph_shared(struct hoard *hoard);
void roads_walk_graph_streams(struct hoard *hoard);
void roads_walk_graph_update(struct hoard *hoard);

/* roads_mix.c */
void roads_walk_mix(struct hoard *hoard);

#endif
