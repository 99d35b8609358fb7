// SPDX-License-Identifier: MIT
//
// CUDA arrays.

#include "conformance.h"

#define FLOAT CU_AD_FORMAT_FLOAT
#define BYTE  CU_AD_FORMAT_UNSIGNED_INT8

struct shape {
    CUarray_format format;
    unsigned channels;
    size_t width, height, depth;
    unsigned flags, levels; /* levels of a mipmapped one */
};

static const struct shape shapes[] = {
    {BYTE, 1, 1000, 0, 0, 0, 0},
    {FLOAT, 1, 100000, 0, 0, 0, 0},
    {FLOAT, 4, 131072, 0, 0, 0, 0},
    {FLOAT, 4, 1000, 1000, 0, 0, 0},
    {FLOAT, 1, 1000, 9, 0, 0, 0},
    {FLOAT, 1, 1000, 129, 0, 0, 0},
    {FLOAT, 1, 33, 5000, 0, 0, 0},
    {CU_AD_FORMAT_HALF, 2, 1920, 1080, 0, 0, 0},
    {CU_AD_FORMAT_UNSIGNED_INT16, 1, 3000, 3000, 0, 0, 0},
    {FLOAT, 4, 1000, 1000, 0, CUDA_ARRAY3D_SURFACE_LDST, 0},
    {CU_AD_FORMAT_HALF, 2, 256, 256, 256, 0, 0},
    {FLOAT, 1, 100, 100, 1, 0, 0},
    {FLOAT, 1, 100, 100, 3, 0, 0},
    {FLOAT, 1, 100, 100, 17, 0, 0},
    {FLOAT, 1, 100, 100, 33, 0, 0},
    {FLOAT, 1, 100, 100, 100, 0, 0},
    {FLOAT, 4, 200, 30, 50, 0, 0},
    {BYTE, 1, 1000, 20, 100, 0, 0},
    {FLOAT, 1, 1000, 1000, 2, 0, 0},
    {FLOAT, 1, 1000, 0, 7, CUDA_ARRAY3D_LAYERED, 0},
    {FLOAT, 1, 500, 500, 7, CUDA_ARRAY3D_LAYERED, 0},
    {FLOAT, 1, 8, 8, 2000, CUDA_ARRAY3D_LAYERED, 0},
    {FLOAT, 1, 500, 500, 6, CUDA_ARRAY3D_CUBEMAP, 0},
    {FLOAT, 1, 100, 100, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 0},
    {CU_AD_FORMAT_BC1_UNORM, 4, 1001, 1001, 0, 0, 0},
    {CU_AD_FORMAT_BC4_UNORM, 1, 1000, 1000, 0, 0, 0},
    {CU_AD_FORMAT_BC6H_UF16, 3, 1000, 1000, 0, 0, 0},
    {CU_AD_FORMAT_BC7_UNORM, 4, 1000, 1000, 3, CUDA_ARRAY3D_LAYERED, 0},
    {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 1000, 1000, 0, 0, 0},
    {CU_AD_FORMAT_UNORM_INT8X4, 4, 1000, 1000, 0, 0, 0},
    {CU_AD_FORMAT_SNORM_INT16X4, 4, 1000, 1000, 0, 0, 0},
    {CU_AD_FORMAT_NV12, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {CU_AD_FORMAT_P210, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {CU_AD_FORMAT_Y444_PLANAR8, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 3, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {CU_AD_FORMAT_YUY2, 4, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {CU_AD_FORMAT_Y410, 1, 1920, 1080, 0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 0},
    {FLOAT, 4, 1000, 1000, 0, 0, 1},
    {FLOAT, 4, 1000, 1000, 0, 0, 5},
    {FLOAT, 4, 1000, 1000, 0, 0, 99},
    {FLOAT, 1, 100, 100, 100, 0, 3},
    {FLOAT, 1, 512, 512, 5, CUDA_ARRAY3D_LAYERED, 10},
    {FLOAT, 1, 256, 256, 6, CUDA_ARRAY3D_CUBEMAP, 9},
    {CU_AD_FORMAT_BC7_UNORM, 4, 1000, 1000, 0, 0, 5},
    {FLOAT, 4, 16384, 16384, 16384, 0, 0}, /* 64 TiB */
    {FLOAT, 4, 4096, 4096, 0, CUDA_ARRAY3D_SPARSE, 0},
    {FLOAT, 4, 4096, 0, 0, CUDA_ARRAY3D_SPARSE, 0},
    /* What cannot be. */
    {FLOAT, 3, 64, 64, 0, 0, 0},
    {FLOAT, 1, 0, 64, 0, 0, 0},
    {FLOAT, 1, 64, 0, 64, 0, 0},
    {FLOAT, 1, 131073, 0, 0, 0, 0},
    {FLOAT, 1, 16385, 8, 8, 0, 0},
    {FLOAT, 1, 64, 32, 6, CUDA_ARRAY3D_CUBEMAP, 0},
    {FLOAT, 1, 64, 64, 0, CUDA_ARRAY3D_LAYERED, 0},
    {FLOAT, 1, 64, 64, 0, CUDA_ARRAY3D_DEPTH_TEXTURE, 0},
    {CU_AD_FORMAT_BC1_UNORM, 1, 64, 64, 0, 0, 0},
    {CU_AD_FORMAT_NV12, 3, 64, 64, 0, 0, 0},
    {(CUarray_format)0x7f, 1, 64, 64, 0, 0, 0},
};

static CUDA_ARRAY3D_DESCRIPTOR describe(const struct shape *shape, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = shape->width,
                                     .Height = shape->height,
                                     .Depth = shape->depth,
                                     .Format = shape->format,
                                     .NumChannels = shape->channels,
                                     .Flags = shape->flags | flags};
}

/* What the driver says that it needs, of one whose memory comes later. */
static void check_requirement(const struct shape *shape)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(shape, CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUDA_ARRAY_MEMORY_REQUIREMENTS need = {.size = SENTINEL};
    CUmipmappedArray mipmap;
    CUarray array;

    if (shape->levels && cuMipmappedArrayCreate(&mipmap, &desc, shape->levels) == CUDA_SUCCESS) {
        QUIET(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0));
        QUIET(cuMipmappedArrayDestroy(mipmap));
    } else if (!shape->levels && cuArray3DCreate_v2(&array, &desc) == CUDA_SUCCESS) {
        QUIET(cuArrayGetMemoryRequirements(&need, array, 0));
        QUIET(cuArrayDestroy(array));
    }
    NUMBER_MODEL(need.size);
}

static void check_shape(const struct shape *shape)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(shape, 0);
    CUmipmappedArray mipmap = (CUmipmappedArray)SENTINEL;
    CUarray array = (CUarray)SENTINEL;

    NUMBER(shape - shapes);
    check_requirement(shape);
    if (shape->levels) {
        if (CALL_MODEL(cuMipmappedArrayCreate(&mipmap, &desc, shape->levels)) == CUDA_SUCCESS)
            CALL_MODEL(cuMipmappedArrayDestroy(mipmap));
        else
            OUTPUT(mipmap);
    } else if (CALL_MODEL(cuArray3DCreate_v2(&array, &desc)) == CUDA_SUCCESS) {
        CALL_MODEL(cuArrayDestroy(array));
    } else {
        OUTPUT(array);
    }
}

static void check_views(void)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = describe(&shapes[3], 0), told;
    CUDA_ARRAY_MEMORY_REQUIREMENTS need;
    CUmipmappedArray mipmap;
    CUarray array, view;

    section("views of arrays");
    CALL_MODEL(cuMipmappedArrayCreate(&mipmap, &desc, 3));
    CALL(cuMipmappedArrayGetLevel(&view, mipmap, 1));
    CALL(cuArray3DGetDescriptor_v2(&told, view));
    NUMBER(told.Width);
    CALL(cuMipmappedArrayGetLevel(&view, mipmap, 3));
    CALL(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0));
    CALL_MODEL(cuMipmappedArrayDestroy(mipmap));
    CALL_MODEL(cuArray3DCreate_v2(&array, &desc));
    CALL(cuArrayGetPlane(&view, array, 0));
    CALL(cuArrayGetMemoryRequirements(&need, array, 0));
    CALL_MODEL(cuArrayDestroy(array));
    desc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 1920,
                                     .Height = 1080,
                                     .Format = CU_AD_FORMAT_NV12,
                                     .NumChannels = 3,
                                     .Flags = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE};
    CALL_MODEL(cuArray3DCreate_v2(&array, &desc));
    CALL(cuArrayGetPlane(&view, array, 1));
    CALL(cuArray3DGetDescriptor_v2(&told, view));
    NUMBER(told.Width);
    NUMBER(told.NumChannels);
    CALL(cuArrayGetPlane(&view, array, 2));
    CALL_MODEL(cuArrayDestroy(array));
}

/* How many of a size share a block, and with what. */
static void check_density(size_t width, size_t height, unsigned count)
{
    CUDA_ARRAY_DESCRIPTOR desc = {
        .Width = width, .Height = height, .Format = BYTE, .NumChannels = 1};
    static CUarray array[600];
    CUdeviceptr at;

    QUIET(cuMemAlloc_v2(&at, MIB));
    forget();
    for (unsigned i = 0; i < count; i++)
        QUIET(cuArrayCreate_v2(&array[i], &desc));
    NUMBER_MODEL(count);
    report('~', CUDA_SUCCESS, "all of them made");
    CALL_MODEL(cuArrayCreate_v2(&array[count], &desc));
    for (unsigned i = 0; i <= count; i++)
        QUIET(cuArrayDestroy(array[i]));
    CALL_MODEL(cuMemFree_v2(at));
}

void check_arrays(void)
{
    CUarray array;

    section("arrays, by their number in tests/conformance/array.c");
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(&shapes[i]);
    CALL(cuArray3DCreate_v2(NULL, &(CUDA_ARRAY3D_DESCRIPTOR){0}));
    CALL(cuArray3DCreate_v2(&array, NULL));
    check_views();
    section("arrays in one block");
    check_density(1000, 0, 256);
    check_density(64, 64, 512);
    check_density(1024, 512, 4);
    check_density(1024, 1024, 2);
}
