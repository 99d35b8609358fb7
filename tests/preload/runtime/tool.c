/* SPDX-License-Identifier: MIT
 *
 * Another tool's library, preloaded too: it counts the calls of cudaMalloc, in the ordinary way.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "runtime_api.h"

unsigned tool_calls(void);

static unsigned calls;

unsigned tool_calls(void)
{
    return calls;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    cudaError_t (*next)(void **, size_t) = NULL;
    calls++;
    *(void **)&next = dlsym(RTLD_NEXT, "cudaMalloc");
    return next ? next(devPtr, size) : cudaErrorInitializationError;
}
