/* SPDX-License-Identifier: MIT
 *
 * Labels for the CUDA runtime's functions: each notes by what name the program asks for memory and
 * from where, and calls the caller's own runtime. What the memory costs is counted as ever, where
 * that runtime calls the driver. A runtime that is linked in statically never comes by here.
 *
 * Where no runtime is loaded the labels are there all the same. dlsym does not show them (see
 * entry_dlsym.c), but a weak reference to cudaMalloc in a program without a runtime is not null
 * under this library; a call then answers that the runtime cannot start, and does nothing.
 */
#include "runtime_api.h"

#include "guard.h"
#include "runtime.h"

/* Returns the caller's own runtime's function, or NULL. The thread is in it until entry_unlabel; in
 * a call from within another one the outermost name stays. */
__attribute__((always_inline)) static inline runtime_function entry_label(enum api api,
                                                                          struct guard_label *outer)
{
    const void *caller = __builtin_return_address(0); /* inlined: the label's own */
    runtime_function function = runtime_find(api, caller);
    *outer = guard_label;
    if (function && !outer->caller)
        guard_label = (struct guard_label){.caller = caller, .api = api};
    return function;
}

static cudaError_t entry_unlabel(const struct guard_label *outer, cudaError_t result)
{
    guard_label = *outer;
    return result;
}

#define ENTRY_LABEL(_symbol, _outer) ((__typeof__(&_symbol))entry_label(API_##_symbol, _outer))

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    struct guard_label outer;
    __typeof__(&cudaMalloc) function = ENTRY_LABEL(cudaMalloc, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, size));
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    struct guard_label outer;
    __typeof__(&cudaMallocPitch) function = ENTRY_LABEL(cudaMallocPitch, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    struct guard_label outer;
    __typeof__(&cudaMalloc3D) function = ENTRY_LABEL(cudaMalloc3D, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(pitchedDevPtr, extent));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned int flags)
{
    struct guard_label outer;
    __typeof__(&cudaMallocArray) function = ENTRY_LABEL(cudaMallocArray, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(array, desc, width, height, flags));
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    struct guard_label outer;
    __typeof__(&cudaMallocManaged) function = ENTRY_LABEL(cudaMallocManaged, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, size, flags));
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    struct guard_label outer;
    __typeof__(&cudaMallocAsync) function = ENTRY_LABEL(cudaMallocAsync, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, size, hStream));
}

cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
    struct guard_label outer;
    __typeof__(&cudaMallocAsync_ptsz) function = ENTRY_LABEL(cudaMallocAsync_ptsz, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, size, hStream));
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                    cudaStream_t stream)
{
    struct guard_label outer;
    __typeof__(&cudaMallocFromPoolAsync) function = ENTRY_LABEL(cudaMallocFromPoolAsync, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(ptr, size, memPool, stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t memPool,
                                         cudaStream_t stream)
{
    struct guard_label outer;
    __typeof__(&cudaMallocFromPoolAsync_ptsz) function =
        ENTRY_LABEL(cudaMallocFromPoolAsync_ptsz, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(ptr, size, memPool, stream));
}

cudaError_t cudaFree(void *devPtr)
{
    struct guard_label outer;
    __typeof__(&cudaFree) function = ENTRY_LABEL(cudaFree, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr));
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    struct guard_label outer;
    __typeof__(&cudaFreeAsync) function = ENTRY_LABEL(cudaFreeAsync, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, hStream));
}

cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream)
{
    struct guard_label outer;
    __typeof__(&cudaFreeAsync_ptsz) function = ENTRY_LABEL(cudaFreeAsync_ptsz, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(devPtr, hStream));
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    struct guard_label outer;
    __typeof__(&cudaFreeArray) function = ENTRY_LABEL(cudaFreeArray, &outer);
    if (!function)
        return cudaErrorInitializationError;
    return entry_unlabel(&outer, function(array));
}
