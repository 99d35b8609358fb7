/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 whose calls cost nothing and do nothing: what remains when it is timed under the
 * library is the library. Addresses are handed out from a ring, so that live ones never repeat.
 */
#include <cuda.h>

#include <stddef.h>

#define RING_BASE  0x7f0000000000ull
#define RING_BYTES (64ull << 30)

static unsigned long long null_next;

/* A new block for 2 MiB and more, else the next 512 bytes, as the driver places them. */
static CUdeviceptr null_address(size_t bytes)
{
    unsigned long long step =
        bytes < (2u << 20) ? 512 : (bytes + (2u << 20) - 1) & ~((2ull << 20) - 1);
    unsigned long long at = null_next;
    if (step > 512)
        at = (at + (2u << 20) - 1) & ~((2ull << 20) - 1);
    null_next = (at + step) % RING_BYTES;
    return RING_BASE + at;
}

CUresult cuInit(unsigned int flags)
{
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    *bytes = 80ull << 30;
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    *uuid = (CUuuid){{0}};
    return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    *pctx = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    *dptr = null_address(bytesize);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    (void)dptr;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    (void)hStream;
    *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    (void)dev;
    *pool = (CUmemoryPool)0x2000;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    (void)pool, (void)attr;
    *(cuuint64_t *)value = 64ull << 20;
    return CUDA_SUCCESS;
}

/* A pool hands out again what was freed last: with one piece live at a time, the same. */
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    (void)bytesize, (void)hStream;
    *dptr = RING_BASE + RING_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    (void)dptr, (void)hStream;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)prop, (void)flags;
    *handle = null_address(size);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = *total = 80ull << 30;
    return CUDA_SUCCESS;
}
