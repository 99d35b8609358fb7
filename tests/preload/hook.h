/* SPDX-License-Identifier: MIT
 *
 * hooks.def as data, with a call of each hook (calls.def): for tests that every row gets.
 */
#ifndef TESTS_PRELOAD_HOOK_H
#define TESTS_PRELOAD_HOOK_H

#include "nvml_api.h"

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

enum hook_role { ALLOCATES, OVERHEAD, FREES, SHAPES, ANSWERS, RESOLVES, STARTS };

enum {
#define HOOK(_symbol, _pfn, _room, _role, _text) HOOK_##_symbol,
#include "gpulimit/tbl/hooks.def"
    HOOKS
};

/* Where a call's results go. */
struct hook_outputs {
    CUdeviceptr address;
    size_t size, more;
    CUdeviceptr_v1 address32;
    unsigned size32, more32;
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool;
    CUcontext context;
    CUgreenCtx green;
    CUstream stream;
    CUarray array;
    CUmipmappedArray mipmapped;
    CUarrayMapInfo map;
    CUgraphExec exec;
    CUmodule module;
    CUlibrary library;
    CUfunction code;
    CUgraphExecUpdateResultInfo update;
    CUexternalMemory external;
    CUmemPoolPtrExportData pointer;
    CUDA_GRAPH_INSTANTIATE_PARAMS instantiate;
    void *function;
    CUdriverProcAddressQueryResult found;
    cuuint64_t number;
    nvmlMemory_t memory;
    nvmlMemory_v2_t memory_v2;
    nvmlDeviceAttributes_t attributes;
};

typedef void (*hook_function)(void);

struct hook {
    const char *symbol;
    enum hook_role role;
    hook_function linked; /* the address that the linker gave this program */
    /* Calls a function of this hook's type, and returns its CUresult or nvmlReturn_t. */
    int (*call)(hook_function function, struct hook_outputs *out);
};

extern struct hook hooks[HOOKS];

/* Calls with fresh outputs, all bytes of which are 0x5a before. */
int hook_call(const struct hook *hook, hook_function function, struct hook_outputs *out);

/* Whether a hook is of NVML; the others are of the driver. */
bool hook_is_nvml(const struct hook *hook);

#endif
