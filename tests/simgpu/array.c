// SPDX-License-Identifier: MIT
//
// Arrays and their views; see array.h.

#include "array.h"

#include <stdlib.h>

#define ARRAY_PLANES 3u

static bool array_place_take(struct array_place *place, CUcontext context,
                             const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    place->context = context;
    /* Their memory comes later, from the program. */
    if (desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return true;
    place->bytes = shape_bytes(desc, levels);
    place->start = block_take(&context->array, place->bytes, &place->block);
    return place->start != 0;
}

static void array_place_give(struct array_place *place)
{
    tiles_end(&place->tiles);
    if (place->start)
        block_give(&place->context->array, place->block, place->start, place->bytes);
}

CUresult array_create(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *array)
{
    CUarray created = handle_create(HANDLE_ARRAY, sizeof *created);

    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    created->desc = *desc;
    if (!array_place_take(&created->place, context, desc, 1)) {
        handle_destroy(&created->handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    LIST_INSERT_HEAD(&context->arrays, created, of_context);
    *array = created;
    return CUDA_SUCCESS;
}

static CUarray array_view(const CUDA_ARRAY3D_DESCRIPTOR *desc, CUcontext context)
{
    CUarray view = handle_create(HANDLE_ARRAY, sizeof *view);

    if (view) {
        view->desc = *desc;
        view->place.context = context;
        view->is_view = true;
    }
    return view;
}

static void array_end(CUarray array)
{
    array_place_give(&array->place);
    for (unsigned i = 0; array->plane && i < ARRAY_PLANES; i++)
        if (array->plane[i])
            array_end(array->plane[i]);
    free(array->plane);
    handle_destroy(&array->handle);
}

void array_destroy(CUarray array)
{
    LIST_REMOVE(array, of_context);
    array_end(array);
}

CUresult array_create_mipmapped(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                unsigned levels, CUmipmappedArray *mipmap)
{
    CUmipmappedArray created = handle_create(HANDLE_MIPMAP, sizeof *created);

    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    created->desc = *desc;
    created->levels = levels;
    created->level = calloc(levels, sizeof(CUarray));
    if (!created->level || !array_place_take(&created->place, context, desc, levels)) {
        free(created->level);
        handle_destroy(&created->handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    LIST_INSERT_HEAD(&context->mipmaps, created, of_context);
    *mipmap = created;
    return CUDA_SUCCESS;
}

void array_destroy_mipmapped(CUmipmappedArray mipmap)
{
    array_place_give(&mipmap->place);
    for (unsigned i = 0; i < mipmap->levels; i++)
        if (mipmap->level[i])
            array_end(mipmap->level[i]);
    free(mipmap->level);
    LIST_REMOVE(mipmap, of_context);
    handle_destroy(&mipmap->handle);
}

void array_end_context(CUcontext context)
{
    while (!LIST_EMPTY(&context->arrays))
        array_destroy(LIST_FIRST(&context->arrays));
    while (!LIST_EMPTY(&context->mipmaps))
        array_destroy_mipmapped(LIST_FIRST(&context->mipmaps));
}

CUarray array_level(CUmipmappedArray mipmap, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = shape_level(&mipmap->desc, level);

    if (!mipmap->level[level])
        mipmap->level[level] = array_view(&desc, mipmap->place.context);
    return mipmap->level[level];
}

CUarray array_plane(CUarray array, unsigned plane)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = shape_plane(&array->desc, plane);

    if (!array->plane)
        array->plane = calloc(ARRAY_PLANES, sizeof(CUarray));
    if (array->plane && !array->plane[plane])
        array->plane[plane] = array_view(&desc, array->place.context);
    return array->plane ? array->plane[plane] : NULL;
}
