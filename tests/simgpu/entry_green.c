// SPDX-License-Identifier: MIT
//
// Green contexts, as far as memory goes: each retains the primary context, which it also is when
// made a plain one, and costs some MiB that the primary context keeps for the next.

#include "context.h"
#include "process.h"

#define GREEN_GROUP 8u /* multiprocessors that are handed out together */

struct CUgreenCtx_st {
    struct handle handle;
    CUcontext primary;
};

struct CUdevResourceDesc_st {
    struct handle handle;
};

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                        CUdevResourceType type)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetDevResource, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    if (!resource)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!process_find_gpu(device, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return process_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
    *resource = (CUdevResource){.type = type, .sm = {.smCount = DRIVER_MULTIPROCESSORS}};
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                             const CUdevResource *input, CUdevResource *remaining,
                                             unsigned int useFlags, unsigned int minCount)
{
    CUresult entered = process_enter(SYMBOL_cuDevSmResourceSplitByCount, PROCESS_SAFE);

    if (entered)
        return entered;
    (void)useFlags; /* which multiprocessors lie beside which */
    if (!nbGroups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM ||
        minCount > input->sm.smCount)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    unsigned each = (unsigned)driver_round(minCount ? minCount : 1, GREEN_GROUP);
    unsigned most = input->sm.smCount / each;
    if (!result || *nbGroups > most)
        *nbGroups = most;
    for (unsigned i = 0; result && i < *nbGroups; i++)
        result[i] = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM, .sm = {.smCount = each}};
    if (remaining)
        *remaining = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM,
                                     .sm = {.smCount = input->sm.smCount - *nbGroups * each}};
    return process_leave(CUDA_SUCCESS);
}

/* The driver has no call that would end it. */
CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                           unsigned int nbResources)
{
    CUresult result = process_enter(SYMBOL_cuDevResourceGenerateDesc, PROCESS_SAFE);

    if (result)
        return result;
    if (!phDesc || !resources || !nbResources)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    CUdevResourceDesc desc = handle_create(HANDLE_DESC, sizeof *desc);
    if (desc)
        *phDesc = desc;
    return process_leave(desc ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult green_create(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
                             unsigned flags)
{
    unsigned gpu;

    if (!green || !handle_is(desc, HANDLE_DESC) || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process_find_gpu(device, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    CUgreenCtx created = handle_create(HANDLE_GREEN, sizeof *created);
    CUcontext primary = created ? context_primary(device) : NULL;
    CUresult result = primary ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !primary->is_alive)
        result = context_revive(primary);
    if (result == CUDA_SUCCESS && !overhead_add_green(&primary->overhead))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        created->primary = primary;
        primary->users++;
        *green = created;
        return CUDA_SUCCESS;
    }
    if (primary && !primary->users)
        context_end(primary);
    if (created)
        handle_destroy(&created->handle);
    return result;
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                  unsigned int flags)
{
    CUresult result = process_enter(SYMBOL_cuGreenCtxCreate, PROCESS_SAFE);

    return result ? result : process_leave(green_create(phCtx, desc, dev, flags));
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    CUresult result = process_enter(SYMBOL_cuGreenCtxDestroy, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hCtx, HANDLE_GREEN))
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    CUcontext primary = hCtx->primary;
    overhead_drop_green(&primary->overhead);
    if (primary->users && --primary->users == 0)
        context_end(primary);
    handle_destroy(&hCtx->handle);
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    CUresult result = process_enter(SYMBOL_cuCtxFromGreenCtx, PROCESS_SAFE);

    if (result)
        return result;
    if (!pContext)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(hCtx, HANDLE_GREEN))
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    *pContext = hCtx->primary;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                        int priority)
{
    CUresult result = process_enter(SYMBOL_cuGreenCtxStreamCreate, PROCESS_SAFE);

    if (result)
        return result;
    if (!phStream || flags != CU_STREAM_NON_BLOCKING)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    if (!handle_is(greenCtx, HANDLE_GREEN) || !greenCtx->primary->is_alive)
        return process_leave(CUDA_ERROR_INVALID_CONTEXT);
    CUstream stream = stream_create(greenCtx->primary, flags, priority);
    if (stream)
        *phStream = stream;
    return process_leave(stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
