// SPDX-License-Identifier: MIT
//
// Formats and tiles; see array_shape.h.

#include "array_shape.h"

#define SHAPE_TILE_WIDTH  64u /* bytes */
#define SHAPE_TILE_HEIGHT 8u  /* rows */
#define SHAPE_BLOCK_TILES 16u /* the highest block, and in 3-D the deepest */

/* Largest extents. */
#define SHAPE_WIDE   131072u /* of 1-D and 2-D */
#define SHAPE_HIGH   65536u
#define SHAPE_SQUARE 32768u /* of layers, cubemaps, mipmaps, gathered textures, 1-D surfaces */
#define SHAPE_DEEP   16384u /* of 3-D */
#define SHAPE_LAYERS 2048u

#define SHAPE_FLAGS                                                                                \
    (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |                     \
     CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |           \
     CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)

/* A column for the bytes of an element: of a channel, or of all where their number is fixed. A
 * block is what one element covers: 1 x 1 texel, or 4 x 4. Planes beyond the first have channels of
 * their own and may be smaller. */
struct shape_format {
    unsigned first, last; /* CUarray_format */
    unsigned element_bytes;
    unsigned channels; /* 0: 1, 2 or 4 */
    unsigned block;
    bool is_video; /* only with CUDA_ARRAY3D_VIDEO_ENCODE_DECODE */
    unsigned planes;
    unsigned plane_channels, plane_width, plane_height; /* divisors */
};

#define SHAPE_ONE(_format, _bytes)                                                                 \
    {                                                                                              \
        CU_AD_FORMAT_##_format, CU_AD_FORMAT_##_format, _bytes, 0, 1, false, 1, 1, 1, 1            \
    }
#define SHAPE_ALL(_format, _bytes, _channels)                                                      \
    {                                                                                              \
        CU_AD_FORMAT_##_format, CU_AD_FORMAT_##_format, _bytes, _channels, 1, false, 1, 1, 1, 1    \
    }
#define SHAPE_BLOCKS(_first, _last, _bytes, _channels)                                             \
    {                                                                                              \
        CU_AD_FORMAT_##_first, CU_AD_FORMAT_##_last, _bytes, _channels, 4, false, 1, 1, 1, 1       \
    }
#define SHAPE_PACKED(_first, _last, _bytes, _channels)                                             \
    {                                                                                              \
        CU_AD_FORMAT_##_first, CU_AD_FORMAT_##_last, _bytes, _channels, 1, true, 1, 1, 1, 1        \
    }
#define SHAPE_PLANES(_first, _last, _bytes, _planes, _channels, _width, _height)                   \
    {                                                                                              \
        CU_AD_FORMAT_##_first, CU_AD_FORMAT_##_last, _bytes, 3, 1, true, _planes, _channels,       \
            _width, _height                                                                        \
    }

// clang-format off
static const struct shape_format formats[] = {
    SHAPE_ONE(UNSIGNED_INT8, 1),  SHAPE_ONE(SIGNED_INT8, 1),
    SHAPE_ONE(UNSIGNED_INT16, 2), SHAPE_ONE(SIGNED_INT16, 2), SHAPE_ONE(HALF, 2),
    SHAPE_ONE(UNSIGNED_INT32, 4), SHAPE_ONE(SIGNED_INT32, 4), SHAPE_ONE(FLOAT, 4),
    SHAPE_ALL(UNORM_INT_101010_2, 4, 4),
    SHAPE_ALL(UNORM_INT8X1, 1, 1),  SHAPE_ALL(UNORM_INT8X2, 2, 2),  SHAPE_ALL(UNORM_INT8X4, 4, 4),
    SHAPE_ALL(UNORM_INT16X1, 2, 1), SHAPE_ALL(UNORM_INT16X2, 4, 2), SHAPE_ALL(UNORM_INT16X4, 8, 4),
    SHAPE_ALL(SNORM_INT8X1, 1, 1),  SHAPE_ALL(SNORM_INT8X2, 2, 2),  SHAPE_ALL(SNORM_INT8X4, 4, 4),
    SHAPE_ALL(SNORM_INT16X1, 2, 1), SHAPE_ALL(SNORM_INT16X2, 4, 2), SHAPE_ALL(SNORM_INT16X4, 8, 4),
    SHAPE_BLOCKS(BC1_UNORM, BC1_UNORM_SRGB, 8, 4), SHAPE_BLOCKS(BC2_UNORM, BC3_UNORM_SRGB, 16, 4),
    SHAPE_BLOCKS(BC4_UNORM, BC4_SNORM, 8, 1),      SHAPE_BLOCKS(BC5_UNORM, BC5_SNORM, 16, 2),
    SHAPE_BLOCKS(BC6H_UF16, BC6H_SF16, 16, 3),     SHAPE_BLOCKS(BC7_UNORM, BC7_UNORM_SRGB, 16, 4),
    SHAPE_PACKED(YUY2, YUY2, 2, 4), SHAPE_PACKED(Y210, Y216, 4, 2), SHAPE_PACKED(AYUV, AYUV, 4, 4),
    SHAPE_PACKED(Y410, Y410, 4, 1), SHAPE_PACKED(Y416, Y416, 8, 4),
    SHAPE_PLANES(NV12, NV12, 1, 2, 2, 2, 2), SHAPE_PLANES(P010, P016, 2, 2, 2, 2, 2),
    SHAPE_PLANES(NV16, NV16, 1, 2, 2, 2, 1), SHAPE_PLANES(P210, P216, 2, 2, 2, 2, 1),
    SHAPE_PLANES(Y444_PLANAR8, Y444_PLANAR8, 1, 3, 1, 1, 1),
    SHAPE_PLANES(Y444_PLANAR10, Y444_PLANAR10, 2, 3, 1, 1, 1),
    SHAPE_PLANES(YUV444_8bit_SemiPlanar, YUV444_8bit_SemiPlanar, 1, 2, 2, 1, 1),
    SHAPE_PLANES(YUV444_16bit_SemiPlanar, YUV444_16bit_SemiPlanar, 2, 2, 2, 1, 1),
};
// clang-format on

/* One without planes: there is no such format. */
static struct shape_format shape_find(CUarray_format format)
{
    for (unsigned i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (format >= formats[i].first && format <= formats[i].last)
            return formats[i];
    return (struct shape_format){.block = 1, .plane_width = 1, .plane_height = 1};
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

unsigned shape_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned wanted)
{
    uint64_t largest = desc->Width > desc->Height ? desc->Width : desc->Height;
    unsigned levels = 1;

    if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && desc->Depth > largest)
        largest = desc->Depth;
    for (; largest > 1; largest /= 2)
        levels++;
    if (!wanted)
        return 1;
    return wanted < levels ? wanted : levels;
}

static bool shape_fits(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t width, uint64_t height)
{
    return desc->Width <= width && desc->Height <= height;
}

static bool shape_has_legal_extents(const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
    unsigned flags = desc->Flags;

    if (flags & CUDA_ARRAY3D_CUBEMAP)
        return desc->Width == desc->Height && desc->Depth && desc->Depth % 6 == 0 &&
               (flags & CUDA_ARRAY3D_LAYERED ? desc->Depth <= SHAPE_LAYERS : desc->Depth == 6) &&
               shape_fits(desc, SHAPE_SQUARE, SHAPE_SQUARE);
    if (flags & CUDA_ARRAY3D_LAYERED)
        return desc->Depth && desc->Depth <= SHAPE_LAYERS &&
               shape_fits(desc, SHAPE_SQUARE, SHAPE_SQUARE);
    if (desc->Depth)
        return desc->Height && shape_fits(desc, SHAPE_DEEP, SHAPE_DEEP) &&
               desc->Depth <= SHAPE_SQUARE;
    if (mipmapped || flags & CUDA_ARRAY3D_TEXTURE_GATHER ||
        (flags & CUDA_ARRAY3D_SURFACE_LDST && !desc->Height))
        return shape_fits(desc, SHAPE_SQUARE, SHAPE_SQUARE);
    return shape_fits(desc, SHAPE_WIDE, SHAPE_HIGH);
}

bool shape_is_legal(const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
    const struct shape_format format = shape_find(desc->Format);
    unsigned flags = desc->Flags;

    if (!format.planes || !shape_has_channels(format, desc->NumChannels) || !desc->Width ||
        (flags & ~(unsigned)SHAPE_FLAGS))
        return false;
    /* Such formats and uses are 2-D at least. */
    if (!desc->Height && (format.block > 1 || format.is_video ||
                          flags & (CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_SPARSE)))
        return false;
    if (flags & CUDA_ARRAY3D_SPARSE && flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return false;
    if (format.is_video && (!(flags & CUDA_ARRAY3D_VIDEO_ENCODE_DECODE) ||
                            desc->Width % format.plane_width || desc->Height % format.plane_height))
        return false;
    return shape_has_legal_extents(desc, mipmapped);
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
    one.NumChannels = plane ? format.plane_channels : 1;
    if (plane) {
        one.Width = desc->Width / format.plane_width;
        one.Height = desc->Height / format.plane_height;
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

/* One layer of one level of one plane. Blocks are flat in 2-D, and one tile high in 3-D. */
static uint64_t shape_slice_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t depth)
{
    const struct shape_format format = shape_find(desc->Format);
    uint64_t element = format.element_bytes * (format.channels ? 1 : desc->NumChannels);
    uint64_t row = (desc->Width + format.block - 1) / format.block * element;
    uint64_t rows = (desc->Height + format.block - 1) / format.block;
    uint64_t tiles = rows ? (rows + SHAPE_TILE_HEIGHT - 1) / SHAPE_TILE_HEIGHT : 1;

    if (depth)
        depth = driver_round(depth, shape_block(depth, SHAPE_BLOCK_TILES));
    else
        tiles = driver_round(tiles, shape_block(tiles, SHAPE_BLOCK_TILES));
    return driver_round(row, SHAPE_TILE_WIDTH) * SHAPE_TILE_HEIGHT * tiles * (depth ? depth : 1);
}

uint64_t shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    bool layered = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    unsigned planes = shape_planes(desc->Format);
    uint64_t sum = 0;

    for (unsigned level = 0; level < levels; level++) {
        CUDA_ARRAY3D_DESCRIPTOR one = shape_level(desc, level);

        if (planes == 1)
            sum += shape_slice_bytes(&one, layered ? 0 : one.Depth);
        for (unsigned plane = 0; planes > 1 && plane < planes; plane++) {
            CUDA_ARRAY3D_DESCRIPTOR part = shape_plane(&one, plane);

            sum += driver_round(shape_slice_bytes(&part, 0), SHAPE_PAGE);
        }
    }
    return sum * (layered ? desc->Depth : 1);
}
