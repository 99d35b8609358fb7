/* SPDX-License-Identifier: MIT
 *
 * cuda.h, with the functions that we define made visible: everything else in the library is hidden.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#define DRIVER_MIB   ((uint64_t)1 << 20)
#define DRIVER_BLOCK (2 * DRIVER_MIB) /* what device memory comes in */

/* An H200's, of every device here. */
#define DRIVER_MULTIPROCESSORS 132
#define DRIVER_THREADS         2048 /* that each can hold */

static inline uint64_t driver_round(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* CUDA_VERSION of this variant, as cuDriverGetVersion tells it. Defined in version.c. */
extern const int driver_version;

#endif
