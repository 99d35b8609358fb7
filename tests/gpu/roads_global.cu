/* SPDX-License-Identifier: MIT
 *
 * A library with a large variable, as nvcc builds it, for roads_overhead.c.
 */
extern "C" {
__device__ char big[64 << 20];

__global__ void touch(unsigned at)
{
    big[at] = 1;
}
}
