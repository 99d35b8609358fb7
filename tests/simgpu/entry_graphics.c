// SPDX-License-Identifier: MIT
//
// Resources of a graphics interface. There is none here, so a test makes them by
// simgpu_graphics_resource; their memory is the other driver's, and takes nothing.

#include "handle.h"
#include "process.h"
#include "simgpu.h"
#include "stream.h"

struct CUgraphicsResource_st {
    struct handle handle;
    bool is_mapped;
};

void *simgpu_graphics_resource(void)
{
    process_lock();
    CUgraphicsResource made = handle_create(HANDLE_GRAPHICS, sizeof *made);
    process_unlock();
    return made;
}

static CUresult graphics_set(unsigned count, CUgraphicsResource *resources, bool is_mapped)
{
    if (count == 0 || !resources)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!handle_is(resources[i], HANDLE_GRAPHICS))
            return CUDA_ERROR_INVALID_HANDLE;
        if (resources[i]->is_mapped == is_mapped)
            return is_mapped ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_NOT_MAPPED;
    }
    for (unsigned i = 0; i < count; i++)
        resources[i]->is_mapped = is_mapped;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources,
                                        CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphicsMapResources, PROCESS_UNSAFE);

    (void)hStream;
    return result ? result : process_leave(graphics_set(count, resources, true));
}

CUresult CUDAAPI cuGraphicsMapResources_ptsz(unsigned int count, CUgraphicsResource *resources,
                                             CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphicsMapResources_ptsz, PROCESS_UNSAFE);

    (void)hStream;
    return result ? result : process_leave(graphics_set(count, resources, true));
}

CUresult CUDAAPI cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources,
                                          CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphicsUnmapResources, PROCESS_UNSAFE);

    (void)hStream;
    return result ? result : process_leave(graphics_set(count, resources, false));
}

CUresult CUDAAPI cuGraphicsUnmapResources_ptsz(unsigned int count, CUgraphicsResource *resources,
                                               CUstream hStream)
{
    CUresult result = process_enter(SYMBOL_cuGraphicsUnmapResources_ptsz, PROCESS_UNSAFE);

    (void)hStream;
    return result ? result : process_leave(graphics_set(count, resources, false));
}

CUresult CUDAAPI cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    CUresult result = process_enter(SYMBOL_cuGraphicsUnregisterResource, PROCESS_UNSAFE);

    if (result)
        return result;
    if (!handle_is(resource, HANDLE_GRAPHICS))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    handle_destroy(&resource->handle);
    return process_leave(CUDA_SUCCESS);
}
