// SPDX-License-Identifier: MIT
//
// Streams and events; see stream.h.

#include "stream.h"

#include "capture.h"
#include "context.h"
#include "linear.h"
#include "pool.h"

static void stream_settle(CUstream stream)
{
    linear_settle(stream);
    pool_synchronize(stream);
}

CUstream stream_create(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = handle_create(HANDLE_STREAM, sizeof *stream);

    if (!stream)
        return NULL;
    if (context->is_alive && !overhead_add_stream(&context->overhead)) {
        handle_destroy(&stream->handle);
        return NULL;
    }
    stream->takes_memory = context->is_alive;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    LIST_INSERT_HEAD(&context->streams, stream, of_context);
    return stream;
}

void stream_destroy(CUstream stream)
{
    struct CUevent_st *event;

    if (!stream)
        return;
    capture_leave(stream);
    stream_settle(stream);
    pool_forget_stream(stream);
    LIST_FOREACH(event, &stream->context->events, of_context)
    if (event->stream == stream)
        event->stream = NULL;
    LIST_REMOVE(stream, of_context);
    if (stream->takes_memory)
        overhead_drop_stream(&stream->context->overhead);
    handle_destroy(&stream->handle);
}

CUresult stream_find(CUstream handle, bool per_thread, CUstream *stream)
{
    if ((uintptr_t)handle <= 2) {
        CUcontext context;
        CUresult result = context_current(&context);

        if (result == CUDA_SUCCESS)
            *stream = handle == CU_STREAM_PER_THREAD || (!handle && per_thread)
                          ? context->per_thread
                          : context->legacy;
        return result;
    }
    *stream = handle;
    return handle_is(handle, HANDLE_STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void stream_synchronize(CUstream stream)
{
    struct CUstream_st *other;

    stream_settle(stream);
    if (stream != stream->context->legacy)
        return;
    /* The legacy stream waits for all but the non-blocking ones. */
    LIST_FOREACH(other, &stream->context->streams, of_context)
    if (!(other->flags & CU_STREAM_NON_BLOCKING))
        stream_settle(other);
}

void stream_synchronize_context(CUcontext context)
{
    struct CUstream_st *stream;

    LIST_FOREACH(stream, &context->streams, of_context)
    stream_settle(stream);
}

CUevent event_create(CUcontext context)
{
    CUevent event = handle_create(HANDLE_EVENT, sizeof *event);

    if (!event)
        return NULL;
    event->context = context;
    LIST_INSERT_HEAD(&context->events, event, of_context);
    return event;
}

void event_destroy(CUevent event)
{
    LIST_REMOVE(event, of_context);
    handle_destroy(&event->handle);
}
