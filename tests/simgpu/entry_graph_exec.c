// SPDX-License-Identifier: MIT
//
// Executable graphs: instantiated, uploaded, launched; and the memory that graphs hold on a device.

#include "capture.h"
#include "graph.h"
#include "process.h"

#define EXEC_FLAGS 15u /* CUgraphInstantiate_flags */

/* ---- coming and going ---- */

static CUresult exec_take(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    if (!exec || !handle_is(graph, HANDLE_GRAPH) || (flags & ~(unsigned long long)EXEC_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    return graph_instantiate(graph, flags, exec);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                    CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    CUresult result = process_enter(SYMBOL_cuGraphInstantiate, PROCESS_UNSAFE);

    (void)phErrorNode; /* no node here is wrong by itself */
    (void)logBuffer;
    (void)bufferSize;
    return result ? result : process_leave(exec_take(phGraphExec, hGraph, 0));
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                       CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    CUresult result = process_enter(SYMBOL_cuGraphInstantiate_v2, PROCESS_UNSAFE);

    (void)phErrorNode;
    (void)logBuffer;
    (void)bufferSize;
    return result ? result : process_leave(exec_take(phGraphExec, hGraph, 0));
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    CUresult result = process_enter(SYMBOL_cuGraphInstantiateWithFlags, PROCESS_UNSAFE);

    if (result)
        return result;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* it lacks the stream for that */
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(exec_take(phGraphExec, hGraph, flags));
}

static CUresult exec_check_capture(CUstream stream)
{
    if (!stream->capture)
        return CUDA_SUCCESS;
    capture_invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult exec_upload(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (!handle_is(exec, HANDLE_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = exec_check_capture(stream);
    return result ? result : graph_memory_back(exec->steps, exec->step_count);
}

static CUresult exec_take_with(CUgraphExec *exec, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS *params, bool per_thread)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = NULL;
    CUresult result = exec_take(exec, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) {
        result = exec_upload(*exec, params->hUploadStream, per_thread);
        if (result)
            graph_exec_destroy(*exec);
    }
    params->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphInstantiateWithParams, PROCESS_UNSAFE);

    return result ? result
                  : process_leave(exec_take_with(phGraphExec, hGraph, instantiateParams, false));
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUresult result = process_enter(SYMBOL_cuGraphInstantiateWithParams_ptsz, PROCESS_UNSAFE);

    return result ? result
                  : process_leave(exec_take_with(phGraphExec, hGraph, instantiateParams, true));
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    CUresult result = process_enter(SYMBOL_cuGraphExecDestroy, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(hGraphExec, HANDLE_EXEC))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    graph_exec_destroy(hGraphExec);
    return process_leave(CUDA_SUCCESS);
}

static CUresult exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult *told)
{
    if (!handle_is(exec, HANDLE_EXEC) || !handle_is(graph, HANDLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_exec_update(exec, graph);
    if (told)
        *told = result ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return result;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    CUresult result = process_enter(SYMBOL_cuGraphExecUpdate, PROCESS_UNSAFE);

    (void)hErrorNode_out;
    return result ? result : process_leave(exec_update(hGraphExec, hGraph, updateResult_out));
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    CUresult result = process_enter(SYMBOL_cuGraphExecUpdate_v2, PROCESS_UNSAFE);
    CUgraphExecUpdateResult *told = resultInfo ? &resultInfo->result : NULL;

    return result ? result : process_leave(exec_update(hGraphExec, hGraph, told));
}

/* ---- running ---- */

CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphUpload, PROCESS_SAFE);

    return result ? result : process_leave(exec_upload(hGraphExec, hStream, false));
}

CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphUpload_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(exec_upload(hGraphExec, hStream, true));
}

/* In a capture it becomes a child graph, in which memory nodes cannot be. */
static CUresult exec_launch(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    CUresult result = stream_find(handle, per_thread, &stream);

    if (!handle_is(exec, HANDLE_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    if (exec->step_count)
        result = exec_check_capture(stream);
    return result ? result : graph_launch(exec);
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphLaunch, PROCESS_SAFE);

    return result ? result : process_leave(exec_launch(hGraphExec, hStream, false));
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphLaunch_ptsz, PROCESS_SAFE);

    return result ? result : process_leave(exec_launch(hGraphExec, hStream, true));
}

/* ---- the memory behind them ---- */

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
                                              void *value)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGetGraphMemAttribute, PROCESS_SAFE);
    unsigned gpu;
    bool known;

    if (result)
        return result;
    if (!process_find_gpu(device, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    uint64_t figure = graph_memory_figure(gpu, attr, &known);
    if (!value || !known)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    *(cuuint64_t *)value = figure;
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr,
                                              void *value)
{
    CUresult result = process_enter(SYMBOL_cuDeviceSetGraphMemAttribute, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    if (!process_find_gpu(device, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!value || *(cuuint64_t *)value || !graph_memory_reset_high(gpu, attr))
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    return process_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = process_enter(SYMBOL_cuDeviceGraphMemTrim, PROCESS_SAFE);
    unsigned gpu;

    if (result)
        return result;
    if (!process_find_gpu(device, &gpu))
        return process_leave(CUDA_ERROR_INVALID_DEVICE);
    graph_memory_trim(gpu);
    return process_leave(CUDA_SUCCESS);
}
