/* SPDX-License-Identifier: MIT
 *
 * CUDA arrays: they share blocks among themselves, die with their context, and lie at addresses
 * that no program learns. Levels and planes are views of another array and own nothing. Called
 * under the driver's lock.
 */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "array_shape.h"
#include "context.h"
#include "tiles.h"

/* What both kinds of array take of the device. */
struct array_place {
    CUcontext context;
    uint64_t start; /* 0: nothing, as for sparse and deferred ones */
    uint64_t bytes;
    struct block *block;
    struct tile_list tiles; /* of sparse and deferred ones */
};

struct CUarray_st {
    struct handle handle;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    struct array_place place;
    CUarray *plane;                    /* made when first asked for */
    bool is_view;                      /* a level or a plane */
    LIST_ENTRY(CUarray_st) of_context; /* not of views */
};

struct CUmipmappedArray_st {
    struct handle handle;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    struct array_place place;
    unsigned levels;
    CUarray *level; /* made when first asked for */
    LIST_ENTRY(CUmipmappedArray_st) of_context;
};

/* 2: the device is full. */
CUresult array_create(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *array);
CUresult array_create_mipmapped(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                unsigned levels, CUmipmappedArray *mipmap);
void array_destroy(CUarray array);
void array_destroy_mipmapped(CUmipmappedArray mipmap);
void array_end_context(CUcontext context); /* all of its arrays */

/* NULL: no memory. */
CUarray array_level(CUmipmappedArray mipmap, unsigned level);
CUarray array_plane(CUarray array, unsigned plane);

#endif
