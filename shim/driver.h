/* SPDX-License-Identifier: MIT
 *
 * What the library asks the driver on its own account. Each question is put in RELAXED capture
 * mode, as some of them would otherwise end a stream capture of the program's (measured:
 * cuMemPoolGetAttribute and cuMemPoolTrimTo do, driver 580.159).
 *
 * Any thread; inside a hook, so that a nested hook passes straight through. No function here
 * creates a context or waits for the device.
 */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H

#include "cuda_api.h"
#include "graphs.h"
#include "pools.h"
#include "tiles.h"
#include "truth.h"

/* Where an allocation goes. */
struct driver_place {
    unsigned device;
    CUcontext context;
};

/* Starts the library's work in this process, see start_process. */
bool driver_start(void);

/* The current context and its device, which is known from then on. Returns false if there is none:
 * whatever the program asks then, the driver has its own answer. */
bool driver_here(struct driver_place *place);

/* Makes a device known by its ordinal. Returns false if the driver has no such device. */
bool driver_knows(int device);

/* The ordinal of the device with a UUID ("GPU-..."), -1 if CUDA does not show it; nothing begins to
 * be known by this. Returns false if CUDA cannot be asked: cuInit has not been called. */
bool driver_find_uuid(const char *uuid, int *device);

/* The pool that cuMemAllocAsync takes from on a stream, and its device. per_thread: stream 0 is the
 * thread's own. Returns false if no pool is involved: an invalid stream, or a capturing one, which
 * makes a graph node. */
bool driver_stream_pool(CUstream stream, bool per_thread, CUmemoryPool *pool, unsigned *device);

/* The device of a pool, for cuMemAllocFromPoolAsync. Returns false for host memory and on a
 * capturing stream. */
bool driver_pool_place(CUmemoryPool pool, CUstream stream, bool per_thread, unsigned *device);

/* What a pool holds now. Returns false if the driver would not say. */
bool driver_read_pool(CUmemoryPool pool, struct pool_reading *reading);

/* Takes back an allocation that turned out not to fit: frees it without waiting, and trims its
 * pool. */
void driver_return_to_pool(CUdeviceptr address, CUmemoryPool pool);

/* What an array will take: asked of a twin that takes nothing (DEFERRED_MAPPING), or computed where
 * the driver will not say. levels is 0 for one that is not mipmapped. Returns false where it takes
 * nothing (sparse, deferred). */
bool driver_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                        uint64_t *bytes);

/* How many threads a device can have resident at once: each has a stack. */
uint64_t driver_resident_threads(unsigned device);

/* truth_begin for a context on a device, which becomes known by it. */
bool driver_begin_context(struct truth_call *call, CUdevice dev, enum api api);

/* What the memory nodes of a graph need. Returns false if it has none. */
bool driver_graph_need(CUgraph graph, struct graphs_need *need);

/* How much of that it may have to be given now: what it left behind and still lives is there
 * already.
 */
uint64_t driver_graph_wants(const struct graphs_need *need);

/* What the graphs of a device hold now. Returns false if the driver would not say. */
bool driver_read_graph_memory(unsigned device, struct pool_reading *reading);

/* The number of a stream by queue.h. */
static inline uint64_t driver_stream(CUstream stream, bool per_thread)
{
    if (stream == CU_STREAM_LEGACY || (!stream && !per_thread))
        return QUEUE_LEGACY_STREAM;
    if (stream == CU_STREAM_PER_THREAD || !stream)
        return QUEUE_THREAD_STREAM;
    return (uint64_t)stream;
}

/* Which stream of which context a handle means. */
struct queue driver_queue(CUstream stream, bool per_thread);

/* Enters RELAXED capture mode, and back into the mode that that returned. */
CUstreamCaptureMode driver_relax(void);
void driver_unrelax(CUstreamCaptureMode mode);

/* Looks again what the pools and graphs of a device hold, and which memory freed in stream order is
 * back. */
void driver_look(unsigned device);

/* The same for every device, after a synchronisation. */
void driver_look_everywhere(void);

#endif
