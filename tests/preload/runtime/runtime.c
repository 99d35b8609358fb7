/* SPDX-License-Identifier: MIT
 *
 * A stand-in for the CUDA runtime, of two major versions: it calls the driver as NVIDIA's does, in
 * the primary context of device 0, and counts the calls, so that a test can tell which of several
 * was called. Its own errors have the driver's numbers.
 */
#include <cuda.h>
#include <pthread.h>

#include "runtime_api.h"

unsigned runtime_calls(void);

static unsigned calls;

unsigned runtime_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

static CUcontext context;

static void start(void)
{
    if (cuInit(0) == CUDA_SUCCESS)
        cuDevicePrimaryCtxRetain(&context, 0);
}

/* The process's first call makes the context, each thread's first one makes it current. */
static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CUcontext current = NULL;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    pthread_once(&once, start);
    if (context && cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current)
        cuCtxSetCurrent(context);
}

static cudaError_t end(CUresult result)
{
    __asm__ volatile("" : "+r"(result)); /* the driver is called by no jump, as by NVIDIA's */
    return (cudaError_t)result;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    begin();
    return end(cuMemAlloc_v2((CUdeviceptr *)devPtr, size));
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    begin();
    return end(cuMemAllocPitch_v2((CUdeviceptr *)devPtr, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    begin();
    pitchedDevPtr->xsize = extent.width;
    pitchedDevPtr->ysize = extent.height;
    return end(cuMemAllocPitch_v2((CUdeviceptr *)&pitchedDevPtr->ptr, &pitchedDevPtr->pitch,
                                  extent.width, extent.height * extent.depth, 4));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned int flags)
{
    const CUDA_ARRAY_DESCRIPTOR description = {
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    begin();
    return desc || flags ? end(CUDA_ERROR_INVALID_VALUE)
                         : end(cuArrayCreate_v2((CUarray *)array, &description));
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    begin();
    return end(cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags));
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    begin();
    return end(cuMemAllocAsync((CUdeviceptr *)devPtr, size, hStream));
}

cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
    begin();
    return end(cuMemAllocAsync_ptsz((CUdeviceptr *)devPtr, size, hStream));
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                    cudaStream_t stream)
{
    begin();
    return end(cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, size, memPool, stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t memPool,
                                         cudaStream_t stream)
{
    begin();
    return end(cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)ptr, size, memPool, stream));
}

cudaError_t cudaFree(void *devPtr)
{
    begin();
    return devPtr ? end(cuMemFree_v2((CUdeviceptr)devPtr)) : end(CUDA_SUCCESS);
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    begin();
    return end(cuMemFreeAsync((CUdeviceptr)devPtr, hStream));
}

cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream)
{
    begin();
    return end(cuMemFreeAsync_ptsz((CUdeviceptr)devPtr, hStream));
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    begin();
    return end(cuArrayDestroy((CUarray)array));
}
