// SPDX-License-Identifier: MIT
//
// Stream capture; see capture.h.

#include "capture.h"

#include "address.h"
#include "context.h"

#include <stdlib.h>

struct capture {
    CUstreamCaptureMode mode;
    const void *thread; /* who began it */
    CUstream origin;
    CUgraph graph;
    bool is_invalid;
    LIST_ENTRY(capture) of_process;
};

static LIST_HEAD(, capture) captures = LIST_HEAD_INITIALIZER(captures);

/* Its address also serves as the thread's name. */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool capture_spoil(void)
{
    struct capture *capture;
    bool spoiled = false;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    LIST_FOREACH(capture, &captures, of_process)
    {
        bool own = capture->thread == &thread_mode;

        if (own ? capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED
                : capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
                      thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
            continue;
        capture->is_invalid = true;
        spoiled = true;
    }
    return spoiled;
}

CUresult capture_exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;

    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult capture_begin(CUstream stream, CUstreamCaptureMode mode)
{
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->graph = handle_create(HANDLE_GRAPH, sizeof *capture->graph);
    if (!capture->graph) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->mode = mode;
    capture->thread = &thread_mode;
    capture->origin = stream;
    stream->capture = capture;
    LIST_INSERT_HEAD(&captures, capture, of_process);
    return CUDA_SUCCESS;
}

/* Streams that joined and events that were recorded know it no longer. */
static void capture_forget(const struct capture *capture)
{
    CUcontext context;
    struct CUstream_st *stream;
    struct CUevent_st *event;

    LIST_FOREACH(context, &contexts, of_process)
    {
        LIST_FOREACH(stream, &context->streams, of_context)
        if (stream->capture == capture)
            stream->capture = NULL;
        LIST_FOREACH(event, &context->events, of_context)
        if (event->capture == capture)
            event->capture = NULL;
    }
}

static CUgraph capture_close(struct capture *capture)
{
    CUgraph graph = capture->graph;

    capture_forget(capture);
    LIST_REMOVE(capture, of_process);
    free(capture);
    return graph;
}

CUresult capture_end(CUstream stream, CUgraph *graph)
{
    struct capture *capture = stream->capture;

    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread_mode)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    bool invalid = capture->is_invalid;
    CUgraph captured = capture_close(capture);
    *graph = invalid ? NULL : captured;
    if (invalid)
        capture_destroy_graph(captured);
    return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUstreamCaptureStatus capture_status(CUstream stream)
{
    if (!stream->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void capture_invalidate(struct capture *capture)
{
    capture->is_invalid = true;
}

void capture_record(CUstream stream, CUevent event)
{
    event->stream = stream;
    event->capture = stream->capture;
}

CUresult capture_wait(CUstream stream, CUevent event)
{
    if (stream->capture && stream->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != event->capture) {
        /* Waiting for work outside the capture, or merging two of them. */
        capture_invalidate(stream->capture);
        return event->capture ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                              : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->capture)
        stream->capture = event->capture;
    return CUDA_SUCCESS;
}

void capture_leave(CUstream stream)
{
    if (stream->capture && stream->capture->origin == stream)
        capture_destroy_graph(capture_close(stream->capture));
    stream->capture = NULL;
}

struct memory *capture_allocate(CUstream stream, uint64_t bytes, CUdevice ordinal)
{
    uint64_t size = driver_round(bytes, DRIVER_BLOCK), start = address_take(size, 0);
    struct memory *memory = start ? memory_insert(MEMORY_GRAPH, start, bytes) : NULL;

    if (!memory) {
        if (start)
            address_give(start, size);
        return NULL;
    }
    memory->ordinal = ordinal;
    LIST_INSERT_HEAD(&stream->capture->graph->memories, memory, of_owner);
    return memory;
}

void capture_free_graph_memory(struct memory *memory)
{
    uint64_t start = memory->range.start, bytes = memory->range.end - start;

    LIST_REMOVE(memory, of_owner);
    address_give(start, driver_round(bytes, DRIVER_BLOCK));
    memory_remove(memory);
}

void capture_destroy_graph(CUgraph graph)
{
    while (!LIST_EMPTY(&graph->memories))
        capture_free_graph_memory(LIST_FIRST(&graph->memories));
    handle_destroy(&graph->handle);
}
