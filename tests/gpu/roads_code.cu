/* SPDX-License-Identifier: MIT
 *
 * Device code for roads_overhead.c, as nvcc builds it: with ROADS_HEAP a kernel that uses the heap,
 * without it a library with a large variable.
 */
#ifdef ROADS_HEAP
extern "C" __global__ void use_heap(unsigned bytes)
{
    char *memory = static_cast<char *>(malloc(bytes + 16));
    if (memory)
        memory[bytes] = 1;
    free(memory);
}
#else
extern "C" {
__device__ char big[64 << 20];

__global__ void touch(unsigned at)
{
    big[at] = 1;
}
}
#endif
