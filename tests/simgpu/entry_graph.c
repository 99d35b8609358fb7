// SPDX-License-Identifier: MIT
//
// Graphs, as far as they go yet: captured ones can be destroyed, and no graph has memory since none
// is run.

#include "capture.h"
#include "process.h"

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    CUresult result = process_enter(SYMBOL_cuGraphDestroy, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(hGraph, HANDLE_GRAPH))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    capture_destroy_graph(hGraph);
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
                                              void *value)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetGraphMemAttribute, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    if (!process_find_gpu(device, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!value || attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *(cuuint64_t *)value = 0;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGraphMemTrim, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    return process_leave(process_find_gpu(device, &gpu) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}
