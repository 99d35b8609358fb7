/* SPDX-License-Identifier: MIT
 *
 * A program as nvcc builds it by default, with the CUDA runtime linked in: the library can reach it only
 * through the driver. Case of tests/gpu/run; the limit is 2048 MiB.
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

static const size_t MIB = (size_t)1 << 20;

static void check(bool truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* As held.py's hold(). */
static void hold(const char *step, size_t bytes, int denials)
{
    printf("HOLD {\"step\": \"%s\", \"kinds\": [\"linear\"], \"framework\": %zu, \"slack\": 0, "
           "\"denials\": %d}\n",
           step, bytes, denials);
    fflush(stdout);
    int c;
    do
        c = getchar();
    while (c != '\n' && c != EOF);
}

__global__ void write_sum(int *out, int a, int b)
{
    *out = a + b;
}

int main()
{
    size_t free_bytes, total_bytes;
    cudaDeviceProp properties;
    check(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess, "cudaMemGetInfo works");
    check(total_bytes == 2048 * MIB, "cudaMemGetInfo gives a total of 2048 MiB");
    check(cudaGetDeviceProperties(&properties, 0) == cudaSuccess, "cudaGetDeviceProperties works");
    check(properties.totalGlobalMem == 2048 * MIB, "totalGlobalMem is 2048 MiB");

    void *first, *second, *large = NULL;
    int *sum, seen = 0;
    check(cudaMalloc(&first, 512 * MIB) == cudaSuccess, "512 MiB fit");
    check(cudaMalloc(&second, 512 * MIB) == cudaSuccess, "512 MiB more fit");
    hold("within", 1024 * MIB, 0);

    check(cudaMalloc(&large, 1500 * MIB) == cudaErrorMemoryAllocation, "1500 MiB more are refused");
    check(cudaGetLastError() == cudaErrorMemoryAllocation, "the error is remembered");
    check(cudaGetLastError() == cudaSuccess, "and only once");

    check(cudaMalloc(&sum, 2 * MIB) == cudaSuccess, "2 MiB fit afterwards");
    write_sum<<<1, 1>>>(sum, 19, 23);
    check(cudaMemcpy(&seen, sum, sizeof seen, cudaMemcpyDeviceToHost) == cudaSuccess, "a copy works");
    check(seen == 42, "a kernel works");
    hold("refused, goes on", 1026 * MIB, 1);

    check(cudaFree(first) == cudaSuccess && cudaFree(second) == cudaSuccess, "cudaFree works");
    check(cudaMalloc(&large, 1500 * MIB) == cudaSuccess, "1500 MiB fit once the rest is freed");
    hold("recovered", 1502 * MIB, 1);
    check(cudaFree(large) == cudaSuccess && cudaFree(sum) == cudaSuccess, "cudaFree works");
    return 0;
}
