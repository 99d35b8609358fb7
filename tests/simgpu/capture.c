// SPDX-License-Identifier: MIT
//
// Stream capture; see capture.h.

#include "capture.h"

#include "context.h"
#include "graph.h"

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
    capture->graph = graph_create();
    if (!capture->graph) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->mode = mode;
    capture->thread = &thread_mode;
    capture->origin = stream;
    stream->capture = capture;
    stream->tail.count = 0;
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
        graph_destroy(captured);
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
    event->tail = stream->tail;
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
    if (!event->capture)
        return CUDA_SUCCESS;
    if (!stream->capture)
        stream->tail.count = 0;
    stream->capture = event->capture;
    for (unsigned i = 0; i < event->tail.count && stream->tail.count < STREAM_TAIL; i++)
        stream->tail.node[stream->tail.count++] = event->tail.node[i];
    return CUDA_SUCCESS;
}

void capture_leave(CUstream stream)
{
    if (stream->capture && stream->capture->origin == stream)
        graph_destroy(capture_close(stream->capture));
    stream->capture = NULL;
}

static void capture_append(CUstream stream, CUgraphNode node)
{
    stream->tail = (struct stream_tail){.node = {node}, .count = 1};
}

CUresult capture_allocate(CUstream stream, uint64_t bytes, CUdevice ordinal, uint64_t *start)
{
    struct graph_place place = {stream->capture->graph, stream->tail.node, stream->tail.count};
    CUgraphNode node;
    CUresult result = graph_add_alloc(&place, ordinal, bytes, &node);

    if (result)
        return result;
    *start = node->allocation->start;
    capture_append(stream, node);
    return CUDA_SUCCESS;
}

CUresult capture_free(CUstream stream, uint64_t start)
{
    struct graph_place place = {stream->capture->graph, stream->tail.node, stream->tail.count};
    CUgraphNode node;
    CUresult result = graph_add_free(&place, start, &node);

    if (result == CUDA_SUCCESS)
        capture_append(stream, node);
    return result;
}
