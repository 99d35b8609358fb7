// SPDX-License-Identifier: MIT
//
// Formats and tiles; see array_shape.h.

#include "array_shape.h"

#define SHAPE_TILE_WIDTH  64u /* bytes */
#define SHAPE_TILE_HEIGHT 8u  /* rows */
#define SHAPE_BLOCK_TILES 16u /* the highest block */
#define SHAPE_BLOCK_DEPTH 32u /* the deepest */
#define SHAPE_EXTENT_MAX  131072u

/* One row of the formats. A block is what one element of it covers: 1 x 1 texel, or 4 x 4. Planes
 * beyond the first are `divide_width` and `divide_height` times smaller. */
struct shape_format {
    unsigned first, last;   /* CUarray_format */
    unsigned element_bytes; /* of a channel, or of all where channels is not 0 */
    unsigned channels;      /* 0: 1, 2 or 4, as the descriptor says */
    unsigned block;
    unsigned planes;
    unsigned divide_width, divide_height;
};

static const struct shape_format formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, 1, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16, 2, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, 2, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF, 2, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32, 4, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, 4, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT, 4, 0, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT_101010_2, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, 1, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, CU_AD_FORMAT_UNORM_INT8X2, 2, 2, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X4, CU_AD_FORMAT_UNORM_INT8X4, 4, 4, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT16X1, CU_AD_FORMAT_UNORM_INT16X1, 2, 1, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, CU_AD_FORMAT_UNORM_INT16X2, 4, 2, 1, 1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT16X4, CU_AD_FORMAT_UNORM_INT16X4, 8, 4, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, 1, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, CU_AD_FORMAT_SNORM_INT8X2, 2, 2, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT8X4, CU_AD_FORMAT_SNORM_INT8X4, 4, 4, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT16X1, CU_AD_FORMAT_SNORM_INT16X1, 2, 1, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, CU_AD_FORMAT_SNORM_INT16X2, 4, 2, 1, 1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT16X4, CU_AD_FORMAT_SNORM_INT16X4, 8, 4, 1, 1, 1, 1},
    {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC1_UNORM_SRGB, 8, 4, 4, 1, 1, 1},
    {CU_AD_FORMAT_BC2_UNORM, CU_AD_FORMAT_BC3_UNORM_SRGB, 16, 4, 4, 1, 1, 1},
    {CU_AD_FORMAT_BC4_UNORM, CU_AD_FORMAT_BC4_SNORM, 8, 1, 4, 1, 1, 1},
    {CU_AD_FORMAT_BC5_UNORM, CU_AD_FORMAT_BC5_SNORM, 16, 2, 4, 1, 1, 1},
    {CU_AD_FORMAT_BC6H_UF16, CU_AD_FORMAT_BC6H_SF16, 16, 3, 4, 1, 1, 1},
    {CU_AD_FORMAT_BC7_UNORM, CU_AD_FORMAT_BC7_UNORM_SRGB, 16, 4, 4, 1, 1, 1},
    {CU_AD_FORMAT_NV12, CU_AD_FORMAT_NV12, 1, 3, 1, 2, 2, 2},
    {CU_AD_FORMAT_P010, CU_AD_FORMAT_P016, 2, 3, 1, 2, 2, 2},
    {CU_AD_FORMAT_NV16, CU_AD_FORMAT_NV16, 1, 3, 1, 2, 2, 1},
    {CU_AD_FORMAT_P210, CU_AD_FORMAT_P216, 2, 3, 1, 2, 2, 1},
};

/* One without planes: there is no such format. */
static struct shape_format shape_find(CUarray_format format)
{
    for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (format >= formats[i].first && format <= formats[i].last)
            return formats[i];
    return (struct shape_format){.block = 1, .divide_width = 1, .divide_height = 1};
}

unsigned shape_planes(CUarray_format format)
{
    return shape_find(format).planes;
}

static bool shape_has_channels(struct shape_format format, unsigned channels)
{
    if (format.channels)
        return format.channels == channels;
    return channels == 1 || channels == 2 || channels == 4;
}

static unsigned shape_level_count(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    uint64_t largest = desc->Width > desc->Height ? desc->Width : desc->Height;
    unsigned levels = 1;

    if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && desc->Depth > largest)
        largest = desc->Depth;
    for (; largest > 1; largest /= 2)
        levels++;
    return levels;
}

bool shape_is_legal(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    const struct shape_format format = shape_find(desc->Format);
    bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED, cube = desc->Flags & CUDA_ARRAY3D_CUBEMAP;

    if (!format.planes || !shape_has_channels(format, desc->NumChannels) || !desc->Width)
        return false;
    if (desc->Width > SHAPE_EXTENT_MAX || desc->Height > SHAPE_EXTENT_MAX ||
        desc->Depth > SHAPE_EXTENT_MAX)
        return false;
    if (cube && (desc->Width != desc->Height || !desc->Depth || desc->Depth % 6 ||
                 (!layered && desc->Depth != 6)))
        return false;
    if (layered ? !desc->Depth : desc->Depth && !desc->Height)
        return false;
    return levels >= 1 && levels <= shape_level_count(desc);
}

CUDA_ARRAY3D_DESCRIPTOR shape_level(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR one = *desc;

    one.Width = desc->Width >> level ? desc->Width >> level : 1;
    one.Height = desc->Height && !(desc->Height >> level) ? 1 : desc->Height >> level;
    if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        one.Depth = desc->Depth && !(desc->Depth >> level) ? 1 : desc->Depth >> level;
    return one;
}

CUDA_ARRAY3D_DESCRIPTOR shape_plane(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned plane)
{
    const struct shape_format format = shape_find(desc->Format);
    CUDA_ARRAY3D_DESCRIPTOR one = *desc;

    one.Format =
        format.element_bytes == 1 ? CU_AD_FORMAT_UNSIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT16;
    one.NumChannels = plane ? 2 : 1;
    if (plane) {
        one.Width = desc->Width / format.divide_width;
        one.Height = desc->Height / format.divide_height;
    }
    return one;
}

/* Blocks grow by powers of two while the array fills more than half of them. */
static uint64_t shape_block(uint64_t tiles, uint64_t most)
{
    uint64_t block = 1;

    while (block < tiles && block < most)
        block *= 2;
    return block;
}

/* One layer of one level of one plane. */
static uint64_t shape_slice_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t depth)
{
    const struct shape_format format = shape_find(desc->Format);
    uint64_t element = format.element_bytes * (format.channels ? 1 : desc->NumChannels);
    uint64_t row = (desc->Width + format.block - 1) / format.block * element;
    uint64_t rows = (desc->Height + format.block - 1) / format.block;
    uint64_t tiles = rows ? (rows + SHAPE_TILE_HEIGHT - 1) / SHAPE_TILE_HEIGHT : 1;

    tiles = driver_round(tiles, shape_block(tiles, SHAPE_BLOCK_TILES));
    depth = driver_round(depth, shape_block(depth, SHAPE_BLOCK_DEPTH));
    return driver_round(row, SHAPE_TILE_WIDTH) * SHAPE_TILE_HEIGHT * tiles * depth;
}

uint64_t shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    bool layered = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    uint64_t depth = desc->Depth ? desc->Depth : 1, sum = 0;

    for (unsigned level = 0; level < levels; level++) {
        CUDA_ARRAY3D_DESCRIPTOR one = shape_level(desc, level);
        uint64_t slices = one.Depth && !layered ? one.Depth : 1;
        unsigned planes = shape_planes(desc->Format);

        for (unsigned plane = 0; plane < planes; plane++) {
            CUDA_ARRAY3D_DESCRIPTOR part = planes > 1 ? shape_plane(&one, plane) : one;

            sum += shape_slice_bytes(&part, slices);
        }
    }
    return sum * (layered ? depth : 1);
}
