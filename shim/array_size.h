/* SPDX-License-Identifier: MIT
 *
 * How large an array is, by its shape: for drivers and devices that do not say. Never less than the
 * driver's own requirement figure, as far as measured (H200, driver 580.159): textures lie in tiles
 * of 64 bytes by 8 rows, tiles in blocks of up to 16 rows of tiles and up to 32 layers of depth.
 *
 * It knows CUarray_format by number and no cuda.h. Pure: any thread.
 */
#ifndef SHIM_ARRAY_SIZE_H
#define SHIM_ARRAY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct array_shape {
    uint64_t width, height, depth; /* in elements; 1-D: height and depth 0; 2-D: depth 0 */
    unsigned format;               /* CUarray_format */
    unsigned channels;
    bool is_layered; /* or a cubemap: depth counts layers, which levels do not halve */
};

/* Bytes of an array; levels is 1 for one that is not mipmapped. A format that is not known counts
 * as the largest. Saturates at UINT64_MAX. 0 for a width of 0. */
uint64_t array_size(const struct array_shape *shape, unsigned levels);

#endif
