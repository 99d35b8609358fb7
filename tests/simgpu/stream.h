/* SPDX-License-Identifier: MIT
 *
 * Streams and events. Nothing runs here, so all work is complete as soon as it is enqueued; what
 * remains of a stream is whether it is being captured, and whose pool memory its synchronisation
 * gives back. Called under the driver's lock.
 */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "driver.h"
#include "handle.h"

#include <sys/queue.h>

struct capture;
struct memory;

#define STREAM_TAIL 8u

/* The nodes that a capture's next one comes after. More than fit are forgotten, which costs some
 * reuse of addresses. */
struct stream_tail {
    CUgraphNode node[STREAM_TAIL];
    unsigned count;
};

struct CUstream_st {
    struct handle handle;
    CUcontext context;
    unsigned flags;
    int priority;
    bool takes_memory;       /* unlike the two that a context comes with */
    struct capture *capture; /* NULL: not capturing */
    struct stream_tail tail;
    LIST_HEAD(, memory) freed; /* cuMemAlloc memory that its next synchronisation gives back */
    LIST_ENTRY(CUstream_st) of_context;
};

struct CUevent_st {
    struct handle handle;
    CUcontext context;
    CUstream stream;         /* where it was recorded last; NULL: never, or that stream is gone */
    struct capture *capture; /* which that stream was capturing then */
    struct stream_tail tail;
    LIST_ENTRY(CUevent_st) of_context;
};

/* Those of a context that does not live yet are its own, and come with it.
 *   NULL: no memory, or the device is full. */
CUstream stream_create(CUcontext context, unsigned flags, int priority);
void stream_destroy(CUstream stream); /* NULL is legal */

/* The stream that a handle means: 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD mean one of the
 * current context. 201, 709: there is no such context. 400: no stream. */
CUresult stream_find(CUstream handle, bool per_thread, CUstream *stream);

/* Pools give back what was freed on these and is above their threshold. */
void stream_synchronize(CUstream stream);
void stream_synchronize_context(CUcontext context);

CUevent event_create(CUcontext context);
void event_destroy(CUevent event);

#endif
