/* SPDX-License-Identifier: MIT
 *
 * Stream capture: which streams record instead of running, and which calls must not come in
 * between. What it records is memory nodes alone. Called under the driver's lock.
 */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include "stream.h"

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

/* Alloc and free nodes. 1: no address to be freed. 2: no addresses left. */
CUresult capture_allocate(CUstream stream, uint64_t bytes, CUdevice ordinal, uint64_t *start);
CUresult capture_free(CUstream stream, uint64_t start);

#endif
