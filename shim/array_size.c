/* SPDX-License-Identifier: MIT
 *
 * The formats and the geometry of array_size.h.
 */
#include "array_size.h"

#define ARRAY_SATURATED UINT64_C(0x3fffffffffffffff)

/* What one element takes; of planar formats a pixel, with its part of all planes. */
struct array_format {
    unsigned first, last; /* CUarray_format */
    unsigned bits;        /* of a channel, or of a whole element or block */
    bool is_whole;        /* the channels are included */
    unsigned block;       /* a compressed block covers so many elements in each direction */
};

// clang-format off
static const struct array_format array_formats[] = {
    {0x01, 0x01, 8, false, 1},    /* UNSIGNED_INT8 */
    {0x02, 0x02, 16, false, 1},   /* UNSIGNED_INT16 */
    {0x03, 0x03, 32, false, 1},   /* UNSIGNED_INT32 */
    {0x08, 0x08, 8, false, 1},    /* SIGNED_INT8 */
    {0x09, 0x09, 16, false, 1},   /* SIGNED_INT16 */
    {0x0a, 0x0a, 32, false, 1},   /* SIGNED_INT32 */
    {0x10, 0x10, 16, false, 1},   /* HALF */
    {0x20, 0x20, 32, false, 1},   /* FLOAT */
    {0x50, 0x50, 32, true, 1},    /* UNORM_INT_101010_2 */
    {0x91, 0x92, 64, true, 4},    /* BC1 */
    {0x93, 0x96, 128, true, 4},   /* BC2, BC3 */
    {0x97, 0x98, 64, true, 4},    /* BC4 */
    {0x99, 0x9e, 128, true, 4},   /* BC5, BC6H, BC7 */
    {0x9f, 0xa1, 24, true, 1},    /* P010, P016: 4:2:0 of 16 bits */
    {0xa2, 0xa2, 16, true, 1},    /* NV16 */
    {0xb0, 0xb0, 12, true, 1},    /* NV12 */
    {0xc0, 0xc0, 8, true, 1},     /* UNORM_INT8X1, X2, X4 */
    {0xc1, 0xc1, 16, true, 1},
    {0xc2, 0xc2, 32, true, 1},
    {0xc3, 0xc3, 16, true, 1},    /* UNORM_INT16X1, X2, X4 */
    {0xc4, 0xc4, 32, true, 1},
    {0xc5, 0xc5, 64, true, 1},
    {0xc6, 0xc6, 8, true, 1},     /* SNORM_INT8X1, X2, X4 */
    {0xc7, 0xc7, 16, true, 1},
    {0xc8, 0xc8, 32, true, 1},
    {0xc9, 0xc9, 16, true, 1},    /* SNORM_INT16X1, X2, X4 */
    {0xca, 0xca, 32, true, 1},
    {0xcb, 0xcb, 64, true, 1},
};
// clang-format on

static struct array_format array_find_format(unsigned format)
{
    for (unsigned i = 0; i < sizeof array_formats / sizeof array_formats[0]; i++) {
        if (format >= array_formats[i].first && format <= array_formats[i].last)
            return array_formats[i];
    }
    return (struct array_format){.bits = 128, .is_whole = true, .block = 1};
}

/* Whole multiples of the smallest power of two that covers it, but of `most` at most. */
static uint64_t array_round(uint64_t value, uint64_t most)
{
    uint64_t step = 1;
    while (step < value && step < most)
        step *= 2;
    return (value + step - 1) / step * step;
}

static uint64_t array_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > ARRAY_SATURATED ? ARRAY_SATURATED
                                                                               : product;
}

/* One level, of one layer if it is layered. */
static uint64_t array_level_bytes(const struct array_format *format, unsigned channels,
                                  uint64_t width, uint64_t height, uint64_t depth)
{
    uint64_t bits = (uint64_t)format->bits * (format->is_whole ? 1 : channels);
    uint64_t row = (array_multiply((width + format->block - 1) / format->block, bits) + 7) / 8;
    uint64_t rows = height ? (height + format->block - 1) / format->block : 1;
    uint64_t tile_rows = array_round((rows + 7) / 8, 16) * 8;
    uint64_t slices = depth ? array_round(depth, 32) : 1;
    return array_multiply(array_multiply((row + 63) / 64 * 64, tile_rows), slices);
}

uint64_t array_size(const struct array_shape *shape, unsigned levels)
{
    struct array_format format = array_find_format(shape->format);
    uint64_t width = shape->width, height = shape->height;
    uint64_t depth = shape->is_layered ? 0 : shape->depth, sum = 0;
    if (width == 0)
        return 0;
    for (unsigned level = 0; level < levels && level < 32; level++) {
        uint64_t bytes = array_level_bytes(&format, shape->channels, width, height, depth);
        sum = sum > ARRAY_SATURATED - bytes ? ARRAY_SATURATED : sum + bytes;
        width = width > 1 ? width / 2 : 1;
        height = height > 1 ? height / 2 : height;
        depth = depth > 1 ? depth / 2 : depth;
    }
    if (shape->is_layered)
        sum = array_multiply(sum, shape->depth ? shape->depth : 1);
    return sum == ARRAY_SATURATED ? UINT64_MAX : sum;
}
