// SPDX-License-Identifier: MIT
//
// Contexts; see context.h.

#include "context.h"

#include "array.h"
#include "backing.h"
#include "linear.h"
#include "process.h"
#include "state.h"

#define CONTEXT_STACK 64

struct context_list contexts = LIST_HEAD_INITIALIZER(contexts);

static _Thread_local CUcontext stack[CONTEXT_STACK];
static _Thread_local unsigned depth;

CUcontext context_create(CUdevice ordinal, unsigned flags, unsigned api_version)
{
    CUcontext context = handle_create(HANDLE_CONTEXT, sizeof *context);

    if (!context)
        return NULL;
    context->ordinal = ordinal;
    context->gpu = process.gpus[ordinal];
    context->flags = flags;
    context->api_version = api_version;
    block_start(&context->linear, context->gpu, false);
    block_start(&context->low, context->gpu, true);
    block_start(&context->array, context->gpu, false);
    LIST_INSERT_HEAD(&contexts, context, of_process);
    return context;
}

CUcontext context_primary(CUdevice ordinal)
{
    CUcontext context;

    LIST_FOREACH(context, &contexts, of_process)
    if (context->is_primary && context->ordinal == ordinal)
        return context;
    context = context_create(ordinal, 0, 3020);
    if (context)
        context->is_primary = true;
    return context;
}

CUresult context_revive(CUcontext context)
{
    if (!backing_take(context->gpu, process.config.context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->legacy = stream_create(context, 0, 0);
    context->per_thread = stream_create(context, 0, 0);
    if (!context->legacy || !context->per_thread) {
        stream_destroy(context->legacy);
        stream_destroy(context->per_thread);
        backing_give(context->gpu, process.config.context_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    state_count_contexts(context->gpu, 1);
    context->is_alive = true;
    return CUDA_SUCCESS;
}

void context_end(CUcontext context)
{
    struct CUstream_st *stream;
    struct CUevent_st *event;

    if (!context->is_alive)
        return;
    while ((event = LIST_FIRST(&context->events)) != NULL)
        event_destroy(event);
    while ((stream = LIST_FIRST(&context->streams)) != NULL)
        stream_destroy(stream);
    array_end_context(context);
    linear_free_context(context);
    context->is_alive = false;
    state_count_contexts(context->gpu, -1);
    backing_give(context->gpu, process.config.context_bytes);
}

CUcontext context_top(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult context_current(CUcontext *context)
{
    *context = context_top();
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (*context)->is_alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_push(CUcontext context)
{
    if (depth == CONTEXT_STACK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult context_pop(CUcontext *context)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

void context_set(CUcontext context)
{
    if (!context)
        depth -= depth != 0;
    else if (depth)
        stack[depth - 1] = context;
    else
        stack[depth++] = context;
}
