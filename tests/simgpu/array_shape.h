/* SPDX-License-Identifier: MIT
 *
 * What an array of a given descriptor takes, as measured on an H200: texels lie in tiles of 64
 * bytes by 8 rows, and tiles in blocks of up to 16, in 2-D one above the other, in 3-D one behind
 * the other, in steps of powers of two as far as the array fills them. Decides only; holds no
 * state.
 */
#ifndef SIMGPU_ARRAY_SHAPE_H
#define SIMGPU_ARRAY_SHAPE_H

#include "driver.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_PAGE 65536u /* what the driver rounds a requirement up to */

/* Whether the driver makes such an array. */
bool shape_is_legal(const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped);

/* How many levels a mipmapped array has of which so many are asked for. */
unsigned shape_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned wanted);

/* Of a legal one, in bytes, all levels, layers and planes. */
uint64_t shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels);

unsigned shape_planes(CUarray_format format);

/* The descriptor of one level, of one plane. */
CUDA_ARRAY3D_DESCRIPTOR shape_level(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level);
CUDA_ARRAY3D_DESCRIPTOR shape_plane(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned plane);

#endif
