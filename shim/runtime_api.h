/* SPDX-License-Identifier: MIT
 *
 * The part of the CUDA runtime's binary interface that this library has labels for. Written from
 * the documented prototypes, as the runtime's own headers come with toolkits and not with the
 * driver; they are the same since the functions are there. Included by entry_runtime
 * alone.
 */
#ifndef SHIM_RUNTIME_API_H
#define SHIM_RUNTIME_API_H

#include <stddef.h>

/* The answer that something is made of here; the runtime has more. */
typedef enum { cudaErrorInitializationError = 3 } cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct cudaArray *cudaArray_t;
struct cudaChannelFormatDesc;

struct cudaExtent {
    size_t width, height, depth;
};

struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};

_Static_assert(sizeof(struct cudaExtent) == 24, "the runtime's layout: it is passed by value");

#pragma GCC visibility push(default)
cudaError_t cudaMalloc(void **devPtr, size_t size);
cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent);
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned int flags);
cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags);
cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream);
cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                    cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t memPool,
                                         cudaStream_t stream);
cudaError_t cudaFree(void *devPtr);
cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream);
cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream);
cudaError_t cudaFreeArray(cudaArray_t array);
#pragma GCC visibility pop

#endif
