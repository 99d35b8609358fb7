// SPDX-License-Identifier: MIT
//
// A context's limits and flags. The stack is the one that takes memory at once: so many bytes for
// each thread that the device can hold. The printf buffer and the malloc heap come when a kernel
// first uses them, so not here, and can be set until then.

#include "context.h"
#include "process.h"

#define LIMIT_STACK_UNIT 16u
#define LIMIT_STACK_MAX  523264u
#define LIMIT_FIFO_MAX   ((uint64_t)1 << 31)

static CUresult limit_set_stack(CUcontext context, uint64_t value)
{
    if (value > LIMIT_STACK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    value = driver_round(value, LIMIT_STACK_UNIT);
    if (!overhead_set_stack(&context->overhead, value))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->limit[CU_LIMIT_STACK_SIZE] = value;
    return CUDA_SUCCESS;
}

static CUresult limit_check(CUlimit limit)
{
    if (limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED
               ? CUDA_ERROR_UNSUPPORTED_LIMIT
               : CUDA_SUCCESS;
}

static CUresult limit_set(CUlimit limit, uint64_t value)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result == CUDA_SUCCESS)
        result = limit_check(limit);
    if (result)
        return result;
    if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED) /* to be asked for alone */
        return CUDA_ERROR_NOT_PERMITTED;
    if (limit == CU_LIMIT_STACK_SIZE)
        return limit_set_stack(context, value);
    if ((limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->overhead.has_heap) ||
        (limit == CU_LIMIT_PRINTF_FIFO_SIZE && context->overhead.has_printf))
        return CUDA_ERROR_INVALID_VALUE;
    /* What is too much, the driver makes fit. */
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && value > LIMIT_FIFO_MAX)
        value = LIMIT_FIFO_MAX;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && value > process.config.memory_bytes / 8)
        value = process.config.memory_bytes / 8;
    context->limit[limit] = value;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult result = process_enter(SYMBOL_cuCtxSetLimit, PROCESS_UNSAFE);

    return result ? result : process_leave(limit_set(limit, value));
}

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    CUresult result = process_enter(SYMBOL_cuCtxGetLimit, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = pvalue ? limit_check(limit) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pvalue = context->limit[limit];
    return process_leave(result);
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuCtxSetFlags, PROCESS_SAFE);
    CUcontext context;

    if (result)
        return result;
    result = context_current(&context);
    if (result == CUDA_SUCCESS && !context_flags_are_legal(flags & ~(unsigned)CU_CTX_MAP_HOST))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->flags = flags;
    return process_leave(result);
}
