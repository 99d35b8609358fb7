// SPDX-License-Identifier: MIT
//
// Memory of other processes: IPC handles, and external memory by descriptor.

#include "context.h"
#include "import.h"
#include "process.h"
#include "vmm.h"

#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct import_note) <= sizeof(CUipcMemHandle), "a note fits in a handle");

/* ---- IPC ---- */

static CUresult ipc_get(CUipcMemHandle *handle, uint64_t address)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    const struct memory *memory = memory_find(address); /* an interior address will do */
    if (!handle || !memory || memory->kind != MEMORY_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    struct import_note note = import_describe(memory, memory->context->gpu);
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &note, sizeof note);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    CUresult result = process_enter(SYMBOL_cuIpcGetMemHandle, PROCESS_SAFE);

    return result ? result : process_leave(ipc_get(pHandle, dptr));
}

static CUresult ipc_open(CUdeviceptr *dptr, const CUipcMemHandle *handle, unsigned flags)
{
    struct import_note note;
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    memcpy(&note, handle->reserved, sizeof note);
    if (!dptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !import_is_note(&note))
        return CUDA_ERROR_INVALID_VALUE;
    if (note.pid == (int)getpid()) /* the exporter itself cannot open it */
        return CUDA_ERROR_INVALID_CONTEXT;
    const struct import *import = import_open(IMPORT_IPC, &note, NULL);
    if (!import)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = import->memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuIpcOpenMemHandle, PROCESS_UNSAFE);

    return result ? result : process_leave(ipc_open(pdptr, &handle, Flags));
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                       unsigned int Flags)
{
    CUresult result = process_enter(SYMBOL_cuIpcOpenMemHandle_v2, PROCESS_UNSAFE);

    return result ? result : process_leave(ipc_open(pdptr, &handle, Flags));
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    CUresult result = process_enter(SYMBOL_cuIpcCloseMemHandle, PROCESS_UNSAFE);

    if (result)
        return result;
    const struct memory *memory = memory_find_start(dptr);
    if (!memory || memory->kind != MEMORY_IMPORTED || memory->import->kind != IMPORT_IPC)
        return process_leave(CUDA_ERROR_INVALID_VALUE);
    import_close(memory->import);
    return process_leave(CUDA_SUCCESS);
}

/* ---- external memory ---- */

struct CUextMemory_st {
    struct handle handle;
    struct vmm_handle *memory;
};

static CUresult external_import(CUexternalMemory *external,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    CUcontext context;
    CUresult result = context_current(&context);

    if (result)
        return result;
    if (!external || !desc || !desc->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUexternalMemory created = handle_create(HANDLE_EXTERNAL, sizeof *created);
    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    created->memory = vmm_import(desc->handle.fd);
    if (!created->memory) {
        handle_destroy(&created->handle);
        return CUDA_ERROR_UNKNOWN;
    }
    close(desc->handle.fd); /* it is the driver's from here on */
    *external = created;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    CUresult result = process_enter(SYMBOL_cuImportExternalMemory, PROCESS_SAFE);

    return result ? result : process_leave(external_import(extMem_out, memHandleDesc));
}

static CUresult external_map(CUdeviceptr *dptr, CUexternalMemory external,
                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    if (!handle_is(external, HANDLE_EXTERNAL))
        return CUDA_ERROR_INVALID_HANDLE;
    const struct vmm_physical *physical = external->memory->physical;
    if (!dptr || !desc || !desc->size || desc->offset > physical->bytes ||
        desc->size > physical->bytes - desc->offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct import_note note = {.gpu = physical->gpu, .bytes = desc->size};
    const struct import *import = import_open(IMPORT_EXTERNAL, &note, external);
    if (!import)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = import->memory->range.start;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    CUresult result = process_enter(SYMBOL_cuExternalMemoryGetMappedBuffer, PROCESS_SAFE);

    return result ? result : process_leave(external_map(devPtr, extMem, bufferDesc));
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    CUresult result = process_enter(SYMBOL_cuDestroyExternalMemory, PROCESS_SAFE);

    if (result)
        return result;
    if (!handle_is(extMem, HANDLE_EXTERNAL))
        return process_leave(CUDA_ERROR_INVALID_HANDLE);
    vmm_release(extMem->memory);
    handle_destroy(&extMem->handle);
    return process_leave(CUDA_SUCCESS);
}
