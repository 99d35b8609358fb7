// SPDX-License-Identifier: MIT
//
// CUDA arrays. The names without _v2 are the CUDA 2.x interface, with 32-bit extents.

#include "array.h"
#include "process.h"

#include <string.h>

/* ---- coming and going ---- */

static CUDA_ARRAY3D_DESCRIPTOR array_widen(const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->Width,
                                     .Height = desc->Height,
                                     .Depth = desc->Depth,
                                     .Format = desc->Format,
                                     .NumChannels = desc->NumChannels,
                                     .Flags = desc->Flags};
}

static CUresult array_take(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!array || !desc || !shape_is_legal(desc, false))
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(context, desc, array);
}

CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    CUresult result = process_enter(SYMBOL_cuArrayCreate, PROCESS_UNSAFE);
    CUDA_ARRAY3D_DESCRIPTOR desc = {0};

    if (result)
        return result;
    if (pAllocateArray)
        desc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = pAllocateArray->Width,
                                         .Height = pAllocateArray->Height,
                                         .Format = pAllocateArray->Format,
                                         .NumChannels = pAllocateArray->NumChannels};
    return process_leave(array_take(pHandle, pAllocateArray ? &desc : NULL));
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    CUresult result = process_enter(SYMBOL_cuArrayCreate_v2, PROCESS_UNSAFE);
    CUDA_ARRAY3D_DESCRIPTOR desc = {0};

    if (result)
        return result;
    if (pAllocateArray)
        desc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = pAllocateArray->Width,
                                         .Height = pAllocateArray->Height,
                                         .Format = pAllocateArray->Format,
                                         .NumChannels = pAllocateArray->NumChannels};
    return process_leave(array_take(pHandle, pAllocateArray ? &desc : NULL));
}

CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    CUresult result = process_enter(SYMBOL_cuArray3DCreate, PROCESS_UNSAFE);
    CUDA_ARRAY3D_DESCRIPTOR desc = {0};

    if (result)
        return result;
    if (pAllocateArray)
        desc = array_widen(pAllocateArray);
    return process_leave(array_take(pHandle, pAllocateArray ? &desc : NULL));
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    CUresult result = process_enter(SYMBOL_cuArray3DCreate_v2, PROCESS_UNSAFE);

    return result ? result : process_leave(array_take(pHandle, pAllocateArray));
}

static CUresult array_put(CUarray array)
{
    if (!handle_is(array, HANDLE_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!array->is_view) /* those go with their owner */
        array_destroy(array);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    CUresult result = process_enter(SYMBOL_cuArrayDestroy, PROCESS_UNSAFE);

    return result ? result : process_leave(array_put(hArray));
}

static CUresult array_take_mipmapped(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                     unsigned levels)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!mipmap || !desc || !shape_is_legal(desc, true))
        return CUDA_ERROR_INVALID_VALUE;
    return array_create_mipmapped(context, desc, shape_levels(desc, levels), mipmap);
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                        const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    CUresult result = process_enter(SYMBOL_cuMipmappedArrayCreate, PROCESS_UNSAFE);

    return result
               ? result
               : process_leave(array_take_mipmapped(pHandle, pMipmappedArrayDesc, numMipmapLevels));
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    CUresult result = process_enter(SYMBOL_cuMipmappedArrayDestroy, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(hMipmappedArray, HANDLE_MIPMAP))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    array_destroy_mipmapped(hMipmappedArray);
    return process_leave(CUDA_SUCCESS);
}

/* ---- views ---- */

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                          unsigned int level)
{
    CUresult result = process_enter(SYMBOL_cuMipmappedArrayGetLevel, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hMipmappedArray, HANDLE_MIPMAP))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!pLevelArray || level >= hMipmappedArray->levels)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    CUarray view = array_level(hMipmappedArray, level);
    if (view)
        *pLevelArray = view;
    return process_leave(view ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult CUDAAPI cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    CUresult result = process_enter(SYMBOL_cuArrayGetPlane, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hArray, HANDLE_ARRAY))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    unsigned planes = shape_planes(hArray->desc.Format);
    if (!pPlaneArray || planes < 2 || planeIdx >= planes)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    CUarray view = array_plane(hArray, planeIdx);
    if (view)
        *pPlaneArray = view;
    return process_leave(view ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

/* ---- what they are ---- */

static CUresult array_describe(CUarray array, const void *output, CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    if (!handle_is(array, HANDLE_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!output)
        return CUDA_ERROR_INVALID_VALUE;
    *desc = array->desc;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUresult result = process_enter(SYMBOL_cuArrayGetDescriptor_v2, PROCESS_SAFE);
    CUDA_ARRAY3D_DESCRIPTOR desc;

    if (result)
        return result;
    result = array_describe(hArray, pArrayDescriptor, &desc);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = desc.Width,
                                                    .Height = desc.Height,
                                                    .Format = desc.Format,
                                                    .NumChannels = desc.NumChannels};
    return process_leave(result);
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor,
                                           CUarray hArray)
{
    CUresult result = process_enter(SYMBOL_cuArray3DGetDescriptor_v2, PROCESS_SAFE);
    CUDA_ARRAY3D_DESCRIPTOR desc;

    if (result)
        return result;
    result = array_describe(hArray, pArrayDescriptor, &desc);
    if (result == CUDA_SUCCESS)
        *pArrayDescriptor = desc;
    return process_leave(result);
}

/* Told of deferred ones alone. */
static CUresult array_require(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                              const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUdevice device)
{
    unsigned gpu;

    if (!requirements || !(desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    if (!process_find_gpu(device, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(requirements, 0, sizeof *requirements);
    requirements->size = driver_round(shape_bytes(desc, levels), SHAPE_PAGE);
    requirements->alignment = SHAPE_PAGE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                              CUarray array, CUdevice device)
{
    CUresult result = process_enter(SYMBOL_cuArrayGetMemoryRequirements, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(array, HANDLE_ARRAY))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    return process_leave(array_require(memoryRequirements, &array->desc, 1, device));
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(
    CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap, CUdevice device)
{
    CUresult result = process_enter(SYMBOL_cuMipmappedArrayGetMemoryRequirements, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(mipmap, HANDLE_MIPMAP))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    return process_leave(array_require(memoryRequirements, &mipmap->desc, mipmap->levels, device));
}
