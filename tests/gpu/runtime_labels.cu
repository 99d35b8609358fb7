/* SPDX-License-Identifier: MIT
 *
 * A program built with nvcc -cudart shared, which takes memory by each function of the CUDA runtime
 * that the library has a label for. Case of tests/gpu/runtime_labels; the limit is 2048 MiB.
 */
#include <cuda_runtime.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MIB = (size_t)1 << 20;

static void check(bool truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* Stops to be looked at. */
static void hold(void)
{
    puts("HOLD");
    fflush(stdout);
    int c;
    do
        c = getchar();
    while (c != '\n' && c != EOF);
}

int main()
{
    void *linear, *pitched, *managed, *streamed, *pooled, *large = NULL;
    cudaPitchedPtr volume;
    cudaArray_t array;
    cudaMemPool_t pool;
    size_t pitch;
    Dl_info info;
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();

    check(cudaFree(0) == cudaSuccess, "the runtime starts");
    check(cudaMalloc(&linear, 64 * MIB) == cudaSuccess, "cudaMalloc");
    check(cudaMallocPitch(&pitched, &pitch, 4096, 8192) == cudaSuccess, "cudaMallocPitch");
    check(cudaMalloc3D(&volume, make_cudaExtent(4096, 64, 64)) == cudaSuccess, "cudaMalloc3D");
    check(cudaMallocArray(&array, &floats, 1024, 2048) == cudaSuccess, "cudaMallocArray");
    check(cudaMallocManaged(&managed, 48 * MIB) == cudaSuccess, "cudaMallocManaged");
    check(cudaMallocAsync(&streamed, 24 * MIB, 0) == cudaSuccess, "cudaMallocAsync");
    check(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess, "the default pool");
    check(cudaMallocFromPoolAsync(&pooled, 20 * MIB, pool, 0) == cudaSuccess,
          "cudaMallocFromPoolAsync");
    hold();

    check(cudaMalloc(&large, 1900 * MIB) == cudaErrorMemoryAllocation, "1900 MiB more are refused");
    check(cudaGetLastError() == cudaErrorMemoryAllocation, "the error is remembered");
    void *found = dlsym(RTLD_DEFAULT, "cudaMalloc");
    check(found && dladdr(found, &info) && strstr(info.dli_fname, "libcudart"),
          "dlsym finds the runtime's own function");

    check(cudaFree(linear) == cudaSuccess && cudaFree(pitched) == cudaSuccess &&
              cudaFree(volume.ptr) == cudaSuccess && cudaFree(managed) == cudaSuccess,
          "cudaFree");
    check(cudaFreeArray(array) == cudaSuccess, "cudaFreeArray");
    check(cudaFreeAsync(streamed, 0) == cudaSuccess && cudaFreeAsync(pooled, 0) == cudaSuccess,
          "cudaFreeAsync");
    check(cudaDeviceSynchronize() == cudaSuccess, "all is done");
    hold();
    return 0;
}
