/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs: what their memory nodes need is learned when they are made executable, and checked
 * before they are uploaded or launched, since the driver must never see a launch that it cannot
 * serve. A graph without memory nodes, or with memory that it has already, passes straight.
 */
#include "driver.h"
#include "entry.h"
#include "limit_graphs.h"

static CUresult entry_note_need(CUresult result, const CUgraphExec *exec, CUgraph graph)
{
    struct graphs_need need;
    if (result == CUDA_SUCCESS && driver_graph_need(graph, &need))
        limit_graph_instantiated((uint64_t)*exec, &need);
    else if (result == CUDA_SUCCESS)
        limit_graph_destroyed((uint64_t)*exec); /* whoever had that handle, seen to go or not */
    return entry_pass(result);
}

/* Only this way of making a graph executable can upload it too. */
static bool entry_uploads(const CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return params && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                    CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (!entry_enter())
        return real.cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
    return entry_note_need(
        real.cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
        phGraphExec, hGraph);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                       CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (!entry_enter())
        return real.cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
    return entry_note_need(
        real.cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
        phGraphExec, hGraph);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    if (!entry_enter())
        return real.cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags);
    return entry_note_need(real.cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags),
                           phGraphExec, hGraph);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
    if (!entry_uploads(instantiateParams) || !driver_graph_need(hGraph, &need))
        return entry_note_need(
            real.cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams), phGraphExec,
            hGraph);
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, 0,
                       API_cuGraphInstantiateWithParams, need.bytes)) {
        instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result = real.cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS) {
        limit_graph_instantiated((uint64_t)*phGraphExec, &need);
        limit_graph_commit(&ticket, (uint64_t)*phGraphExec);
    } else {
        entry_cancel(&ticket, result);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams);
    if (!entry_uploads(instantiateParams) || !driver_graph_need(hGraph, &need))
        return entry_note_need(
            real.cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams),
            phGraphExec, hGraph);
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, 0,
                       API_cuGraphInstantiateWithParams_ptsz, need.bytes)) {
        instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUresult result =
        real.cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS) {
        limit_graph_instantiated((uint64_t)*phGraphExec, &need);
        limit_graph_commit(&ticket, (uint64_t)*phGraphExec);
    } else {
        entry_cancel(&ticket, result);
    }
    guard_leave();
    return result;
}

/* An update may make memory nodes larger or smaller; it can neither bring nor take any (measured,
 * driver 580.159). */
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    if (!entry_enter())
        return real.cuGraphExecUpdate(hGraphExec, hGraph, hErrorNode_out, updateResult_out);
    return entry_note_need(
        real.cuGraphExecUpdate(hGraphExec, hGraph, hErrorNode_out, updateResult_out), &hGraphExec,
        hGraph);
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    if (!entry_enter())
        return real.cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo);
    return entry_note_need(real.cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo), &hGraphExec,
                           hGraph);
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphUpload(hGraphExec, hStream);
    if (!limit_graph_needs((uint64_t)hGraphExec, &need))
        return entry_pass(real.cuGraphUpload(hGraphExec, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, (uint64_t)hGraphExec,
                       API_cuGraphUpload, driver_graph_wants(&need)))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuGraphUpload(hGraphExec, hStream);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS)
        limit_graph_commit(&ticket, (uint64_t)hGraphExec);
    else
        entry_cancel(&ticket, result);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphUpload_ptsz(hGraphExec, hStream);
    if (!limit_graph_needs((uint64_t)hGraphExec, &need))
        return entry_pass(real.cuGraphUpload_ptsz(hGraphExec, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, (uint64_t)hGraphExec,
                       API_cuGraphUpload_ptsz, driver_graph_wants(&need)))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuGraphUpload_ptsz(hGraphExec, hStream);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS)
        limit_graph_commit(&ticket, (uint64_t)hGraphExec);
    else
        entry_cancel(&ticket, result);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphLaunch(hGraphExec, hStream);
    if (!limit_graph_needs((uint64_t)hGraphExec, &need))
        return entry_pass(real.cuGraphLaunch(hGraphExec, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, (uint64_t)hGraphExec,
                       API_cuGraphLaunch, driver_graph_wants(&need)))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuGraphLaunch(hGraphExec, hStream);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS)
        limit_graph_commit(&ticket, (uint64_t)hGraphExec);
    else
        entry_cancel(&ticket, result);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
    struct graphs_need need;
    struct ticket ticket;
    if (!entry_enter())
        return real.cuGraphLaunch_ptsz(hGraphExec, hStream);
    if (!limit_graph_needs((uint64_t)hGraphExec, &need))
        return entry_pass(real.cuGraphLaunch_ptsz(hGraphExec, hStream));
    if (!limit_reserve(&ticket, GPULIMIT_KIND_GRAPH, need.device, (uint64_t)hGraphExec,
                       API_cuGraphLaunch_ptsz, driver_graph_wants(&need)))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuGraphLaunch_ptsz(hGraphExec, hStream);
    driver_read_graph_memory(need.device, &ticket.reading);
    if (result == CUDA_SUCCESS)
        limit_graph_commit(&ticket, (uint64_t)hGraphExec);
    else
        entry_cancel(&ticket, result);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    if (!entry_enter())
        return real.cuGraphExecDestroy(hGraphExec);
    /* Before: the driver may hand the handle out again at once. If it fails, the next launch is not
     * checked, but it has been launched before or is no graph. */
    limit_graph_destroyed((uint64_t)hGraphExec);
    CUresult result = real.cuGraphExecDestroy(hGraphExec);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    struct pool_reading reading;
    if (!entry_enter())
        return real.cuDeviceGraphMemTrim(device);
    CUresult result = real.cuDeviceGraphMemTrim(device);
    if (result == CUDA_SUCCESS && driver_knows(device) &&
        driver_read_graph_memory((unsigned)device, &reading))
        limit_graph_update((unsigned)device, &reading, true);
    guard_leave();
    return result;
}
