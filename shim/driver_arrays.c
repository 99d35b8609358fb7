/* SPDX-License-Identifier: MIT
 *
 * What an array takes, see driver.h.
 */
#include "driver.h"

#include "array_size.h"
#include "blocks.h"
#include "real.h"

/* Flags with which the driver gives no memory: it comes with what is mapped into the array. */
#define DRIVER_TAKES_NOTHING (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* What is required comes in whole pages, but small arrays share these too: thousands of 1 x 1 lie
 * in one block (measured on an H200 for arrays of one and two dimensions). */
#define DRIVER_PAGE 65536u

static bool driver_ask_array(const CUDA_ARRAY3D_DESCRIPTOR *twin, CUdevice device, uint64_t *bytes)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUarray array;
    if (real.cuArray3DCreate_v2(&array, twin) != CUDA_SUCCESS)
        return false;
    CUresult result = real.cuArrayGetMemoryRequirements(&needs, array, device);
    real.cuArrayDestroy(array);
    *bytes = needs.size;
    return result == CUDA_SUCCESS;
}

static bool driver_ask_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR *twin, unsigned levels,
                                 CUdevice device, uint64_t *bytes)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUmipmappedArray array;
    if (real.cuMipmappedArrayCreate(&array, twin, levels) != CUDA_SUCCESS)
        return false;
    CUresult result = real.cuMipmappedArrayGetMemoryRequirements(&needs, array, device);
    real.cuMipmappedArrayDestroy(array);
    *bytes = needs.size;
    return result == CUDA_SUCCESS;
}

static uint64_t driver_guess_array(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    struct array_shape shape = {
        .width = descriptor->Width,
        .height = descriptor->Height,
        .depth = descriptor->Depth,
        .format = (unsigned)descriptor->Format,
        .channels = descriptor->NumChannels,
        .is_layered = descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP),
    };
    return array_size(&shape, levels > 0 ? levels : 1);
}

bool driver_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels, uint64_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR twin = *descriptor;
    CUdevice device;
    if (descriptor->Width == 0 || (descriptor->Flags & DRIVER_TAKES_NOTHING) ||
        real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return false;
    twin.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    CUstreamCaptureMode mode = driver_relax();
    bool is_told = levels > 0 ? driver_ask_mipmapped(&twin, levels, device, bytes)
                              : driver_ask_array(&twin, device, bytes);
    driver_unrelax(mode);
    uint64_t guess = driver_guess_array(descriptor, levels);
    bool is_small = is_told && levels == 0 && descriptor->Depth == 0 && *bytes < BLOCKS_BYTES;
    if (!is_told) /* an older driver or device, or a shape that the driver is about to refuse */
        *bytes = guess;
    else if (is_small && guess < *bytes && *bytes - guess < DRIVER_PAGE)
        *bytes = guess;
    return *bytes > 0;
}
