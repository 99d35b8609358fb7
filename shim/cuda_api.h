/* SPDX-License-Identifier: MIT
 *
 * NVIDIA's declarations, as this library needs them: every function under the name that the driver
 * exports
 * (__CUDA_API_VERSION_INTERNAL keeps cuda.h from renaming cuMemAlloc to cuMemAlloc_v2), and
 * visible, since the library is compiled with everything hidden. Included by entry_*, hooks, real
 * and driver alone.
 */
#ifndef SHIM_CUDA_API_H
#define SHIM_CUDA_API_H

#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile with -D__CUDA_API_VERSION_INTERNAL: cuda.h would rename functions"
#endif

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <cudaTypedefs.h>

#endif
