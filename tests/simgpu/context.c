// SPDX-License-Identifier: MIT
//
// Contexts; see context.h.

#include "context.h"

#include "array.h"
#include "linear.h"
#include "module.h"
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
    block_start(&context->module, context->gpu, false);
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
    if (!overhead_start(&context->overhead, context->gpu))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->legacy = stream_create(context, 0, 0);
    context->per_thread = stream_create(context, 0, 0);
    if (!context->legacy || !context->per_thread) {
        stream_destroy(context->legacy);
        stream_destroy(context->per_thread);
        overhead_end(&context->overhead);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    state_count_contexts(context->gpu, 1);
    context->is_alive = true;
    context->limit[CU_LIMIT_STACK_SIZE] = OVERHEAD_STACK;
    context->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = OVERHEAD_PRINTF;
    context->limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
    context->limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    context->limit[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 11796480;
    CUresult result = module_start_context(context);
    if (result)
        context_end(context);
    return result;
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
    module_end_context(context);
    array_end_context(context);
    linear_free_context(context);
    context->is_alive = false;
    state_count_contexts(context->gpu, -1);
    overhead_end(&context->overhead);
}

bool context_flags_are_legal(unsigned flags)
{
    unsigned others = CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_COREDUMP_ENABLE |
                      CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;
    unsigned schedule = flags & CU_CTX_SCHED_MASK;

    return !(flags & ~(CU_CTX_SCHED_MASK | others)) &&
           (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
            schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC);
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
