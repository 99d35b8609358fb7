// SPDX-License-Identifier: MIT
//
// Copies and fills: device contents are not kept, so these check their ranges, and fills bring
// managed memory to the device. A read from the device fills host memory with zeros.

#include "linear.h"
#include "process.h"
#include "vmm.h"

#include <string.h>

static bool copy_is_inside(uint64_t start, uint64_t bytes)
{
    const struct memory *memory = memory_find(start);
    const struct vmm_mapping *mapping = vmm_find_mapping(start);

    if (memory)
        return bytes <= memory->range.end - start;
    return mapping && mapping->has_access && bytes <= mapping->range.end - start;
}

/* Works on up to two device ranges; a second of 0 stands for host memory. */
static CUresult copy_check(uint64_t first, uint64_t second, uint64_t bytes)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result || !bytes)
        return result;
    if (!copy_is_inside(first, bytes) || (second && !copy_is_inside(second, bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Which pages lie where is not kept: all from the start of an allocation to here. */
static void copy_touch(uint64_t start, uint64_t bytes)
{
    struct memory *memory = memory_find(start);

    if (memory && memory->kind == MEMORY_MANAGED)
        linear_touch(memory, start + bytes - memory->range.start);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    CUresult result = process_enter(SYMBOL_cuMemcpyHtoD_v2, PROCESS_SAFE);

    if (result)
        return result;
    result = copy_check(dstDevice, 0, ByteCount);
    if (result == CUDA_SUCCESS && ByteCount && !srcHost)
        result = CUDA_ERROR_INVALID_VALUE;
    return process_leave(result);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    CUresult result = process_enter(SYMBOL_cuMemcpyDtoH_v2, PROCESS_SAFE);

    if (result)
        return result;
    result = copy_check(srcDevice, 0, ByteCount);
    if (result == CUDA_SUCCESS && ByteCount && !dstHost)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && ByteCount)
        memset(dstHost, 0, ByteCount);
    return process_leave(result);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    CUresult result = process_enter(SYMBOL_cuMemcpyDtoD_v2, PROCESS_SAFE);

    if (result)
        return result;
    result = copy_check(dstDevice, srcDevice, ByteCount);
    if (result == CUDA_SUCCESS && ByteCount && !srcDevice)
        result = CUDA_ERROR_INVALID_VALUE;
    return process_leave(result);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    CUresult result = process_enter(SYMBOL_cuMemsetD8_v2, PROCESS_SAFE);

    (void)uc; /* contents are not kept */
    if (result)
        return result;
    result = copy_check(dstDevice, 0, N);
    if (result == CUDA_SUCCESS && N)
        copy_touch(dstDevice, N);
    return process_leave(result);
}
