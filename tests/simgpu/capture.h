/* SPDX-License-Identifier: MIT
 *
 * Stream capture: which streams record instead of running, and which calls must not come in
 * between. A captured graph is an opaque object that owns the addresses of its alloc nodes. Called
 * under the driver's lock.
 */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include "memory.h"
#include "stream.h"

struct CUgraph_st {
    struct handle handle;
    LIST_HEAD(, memory) memories;
};

/* Whether an unsafe call by this thread is forbidden now. If so, invalidates the captures it
 * disturbs. */
bool capture_spoil(void);

CUresult capture_begin(CUstream stream, CUstreamCaptureMode mode);
CUresult capture_end(CUstream stream, CUgraph *graph);
CUstreamCaptureStatus capture_status(CUstream stream);
void capture_invalidate(struct capture *capture);

/* An event takes the stream's capture along; a stream that waits for it joins. */
void capture_record(CUstream stream, CUevent event);
CUresult capture_wait(CUstream stream, CUevent event);

/* The stream goes: its capture ends without a graph if it began there. */
void capture_leave(CUstream stream);

/* Exchanges the calling thread's mode. */
CUresult capture_exchange_mode(CUstreamCaptureMode *mode);

/* Alloc and free nodes. NULL: no addresses left. */
struct memory *capture_allocate(CUstream stream, uint64_t bytes, CUdevice ordinal);
void capture_free_graph_memory(struct memory *memory);
void capture_destroy_graph(CUgraph graph);

#endif
