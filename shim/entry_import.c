/* SPDX-License-Identifier: MIT
 *
 * Memory of other processes (IPC, pointers of their pools) and of other interfaces (external
 * memory, graphics while it is mapped). It is listed and charged to nobody here, so nothing is
 * refused. What is mapped out of external memory is a view: it is in no ledger, and freeing it
 * frees nothing.
 */
#include "driver.h"
#include "entry.h"
#include "limit_exports.h"
#include "limit_imports.h"

/* Lists what was opened in the current context. */
static void entry_list(uint64_t address, enum api api)
{
    struct driver_place place;
    if (driver_here(&place))
        limit_imported(address, place.device, (uint64_t)place.context, api);
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                       unsigned int Flags)
{
    if (!entry_enter())
        return real.cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
    CUresult result = real.cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
    if (result == CUDA_SUCCESS)
        entry_list(*pdptr, API_cuIpcOpenMemHandle_v2);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    if (!entry_enter())
        return real.cuIpcOpenMemHandle(pdptr, handle, Flags);
    CUresult result = real.cuIpcOpenMemHandle(pdptr, handle, Flags);
    if (result == CUDA_SUCCESS)
        entry_list(*pdptr, API_cuIpcOpenMemHandle);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    if (!entry_enter())
        return real.cuIpcCloseMemHandle(dptr);
    CUresult result = real.cuIpcCloseMemHandle(dptr);
    if (result == CUDA_SUCCESS)
        limit_closed(dptr);
    guard_leave();
    return result;
}

/* Such a pointer survives contexts, and one cuMemFree ends it, however often it was imported. */
CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    struct driver_place place;
    if (!entry_enter())
        return real.cuMemPoolImportPointer(ptr_out, pool, shareData);
    CUresult result = real.cuMemPoolImportPointer(ptr_out, pool, shareData);
    if (result == CUDA_SUCCESS && driver_here(&place))
        limit_imported(*ptr_out, place.device, 0, API_cuMemPoolImportPointer);
    guard_leave();
    return result;
}

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    if (!entry_enter())
        return real.cuImportExternalMemory(extMem_out, memHandleDesc);
    CUresult result = real.cuImportExternalMemory(extMem_out, memHandleDesc);
    if (result == CUDA_SUCCESS) {
        limit_external_imported();
        entry_list((uint64_t)*extMem_out, API_cuImportExternalMemory);
    }
    guard_leave();
    return result;
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    if (!entry_enter())
        return real.cuDestroyExternalMemory(extMem);
    CUresult result = real.cuDestroyExternalMemory(extMem);
    if (result == CUDA_SUCCESS) {
        limit_closed((uint64_t)extMem);
        limit_external_destroyed();
    }
    guard_leave();
    return result;
}

/* ---- graphics ---- */

static CUresult entry_list_mapped(CUresult result, unsigned count, const CUgraphicsResource *mapped,
                                  enum api api)
{
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        entry_list((uint64_t)mapped[i], api);
    return entry_pass(result);
}

static CUresult entry_close_unmapped(CUresult result, unsigned count,
                                     const CUgraphicsResource *unmapped)
{
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        limit_closed((uint64_t)unmapped[i]);
    return entry_pass(result);
}

CUresult CUDAAPI cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources,
                                        CUstream hStream)
{
    if (!entry_enter())
        return real.cuGraphicsMapResources(count, resources, hStream);
    return entry_list_mapped(real.cuGraphicsMapResources(count, resources, hStream), count,
                             resources, API_cuGraphicsMapResources);
}

CUresult CUDAAPI cuGraphicsMapResources_ptsz(unsigned int count, CUgraphicsResource *resources,
                                             CUstream hStream)
{
    if (!entry_enter())
        return real.cuGraphicsMapResources_ptsz(count, resources, hStream);
    return entry_list_mapped(real.cuGraphicsMapResources_ptsz(count, resources, hStream), count,
                             resources, API_cuGraphicsMapResources_ptsz);
}

CUresult CUDAAPI cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources,
                                          CUstream hStream)
{
    if (!entry_enter())
        return real.cuGraphicsUnmapResources(count, resources, hStream);
    return entry_close_unmapped(real.cuGraphicsUnmapResources(count, resources, hStream), count,
                                resources);
}

CUresult CUDAAPI cuGraphicsUnmapResources_ptsz(unsigned int count, CUgraphicsResource *resources,
                                               CUstream hStream)
{
    if (!entry_enter())
        return real.cuGraphicsUnmapResources_ptsz(count, resources, hStream);
    return entry_close_unmapped(real.cuGraphicsUnmapResources_ptsz(count, resources, hStream),
                                count, resources);
}

CUresult CUDAAPI cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    if (!entry_enter())
        return real.cuGraphicsUnregisterResource(resource);
    return entry_close_unmapped(real.cuGraphicsUnregisterResource(resource), 1, &resource);
}
