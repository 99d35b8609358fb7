// SPDX-License-Identifier: MIT
//
// Physical memory, handles and mappings; see vmm.h. Sharing between processes is vmm_share.c's
// matter.

#include "vmm.h"

#include "address.h"
#include "backing.h"

#include <stdlib.h>
#include <unistd.h>

struct vmm_reservation {
    struct range range;
};

struct vmm_list vmm_physicals = LIST_HEAD_INITIALIZER(vmm_physicals);

static struct range_set reservations, mappings;

static void vmm_hide(struct vmm_physical *physical, bool hidden)
{
    if (physical->is_paid && physical->is_hidden != hidden)
        backing_hide(physical->gpu, hidden ? (int64_t)physical->bytes : -(int64_t)physical->bytes);
    physical->is_hidden = hidden;
}

static void vmm_end_physical(struct vmm_physical *physical)
{
    vmm_hide(physical, false);
    if (physical->is_paid)
        backing_give(physical->gpu, physical->bytes);
    if (physical->exported >= 0)
        close(physical->exported);
    if (physical->imported >= 0)
        close(physical->imported);
    LIST_REMOVE(physical, of_process);
    free(physical);
}

void vmm_collect(void)
{
    struct vmm_physical *physical = LIST_FIRST(&vmm_physicals), *next;

    for (; physical; physical = next) {
        next = LIST_NEXT(physical, of_process);
        if (!physical->uses && !vmm_is_exported(physical))
            vmm_end_physical(physical);
    }
}

static void vmm_drop(struct vmm_physical *physical)
{
    if (--physical->uses)
        return;
    if (vmm_is_exported(physical))
        vmm_hide(physical, true);
    else
        vmm_end_physical(physical);
}

struct vmm_handle *vmm_open(struct vmm_physical *physical)
{
    struct vmm_handle *handle = handle_create(HANDLE_VMM, sizeof *handle);

    if (!handle)
        return NULL;
    handle->physical = physical;
    handle->references = 1;
    physical->uses++;
    vmm_hide(physical, false);
    return handle;
}

struct vmm_handle *vmm_create(const CUmemAllocationProp *prop, unsigned gpu, uint64_t bytes,
                              bool paid)
{
    struct vmm_physical *physical = calloc(1, sizeof *physical);

    if (!physical)
        return NULL;
    if (paid && !backing_take(gpu, bytes)) {
        free(physical);
        return NULL;
    }
    physical->prop = *prop;
    physical->gpu = gpu;
    physical->bytes = bytes;
    physical->is_paid = paid;
    physical->exported = physical->imported = -1;
    LIST_INSERT_HEAD(&vmm_physicals, physical, of_process);
    struct vmm_handle *handle = vmm_open(physical);
    if (!handle)
        vmm_end_physical(physical);
    return handle;
}

static void vmm_end_handle(struct vmm_handle *handle)
{
    struct vmm_physical *physical = handle->physical;
    handle_destroy(&handle->handle);
    vmm_drop(physical);
}

/* After a change of what keeps the handle's memory; the handle itself may be gone. */
static void vmm_review(struct vmm_handle *handle)
{
    if (handle->references || handle->mappings)
        vmm_hide(handle->physical, handle->physical->uses == 1 && !handle->references &&
                                       handle->mappings == handle->holds);
    else
        vmm_end_handle(handle);
}

void vmm_release(struct vmm_handle *handle)
{
    handle->references--;
    vmm_review(handle);
}

void vmm_hold(struct vmm_handle *handle, bool in_array)
{
    handle->mappings++;
    handle->holds += in_array;
    vmm_review(handle);
}

void vmm_let_go(struct vmm_handle *handle, bool in_array)
{
    handle->mappings--;
    handle->holds -= in_array;
    vmm_review(handle);
}

struct vmm_handle *vmm_find_handle(CUmemGenericAllocationHandle value)
{
    struct vmm_handle *handle = (struct vmm_handle *)(uintptr_t)value;

    return handle_is(handle, HANDLE_VMM) && handle->references ? handle : NULL;
}

struct vmm_mapping *vmm_find_mapping(uint64_t address)
{
    return range_find(&mappings, address, address + 1);
}

uint64_t vmm_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint)
{
    struct vmm_reservation *reservation = calloc(1, sizeof *reservation);

    if (!reservation)
        return 0;
    uint64_t start = hint && hint % DRIVER_BLOCK == 0 && address_take_at(hint, bytes)
                         ? hint
                         : address_take(bytes, alignment);
    reservation->range = (struct range){start, start + bytes};
    if (start && range_insert(&reservations, &reservation->range))
        return start;
    if (start)
        address_give(start, bytes);
    free(reservation);
    return 0;
}

CUresult vmm_unreserve(uint64_t start, uint64_t bytes)
{
    struct vmm_reservation *reservation = range_find(&reservations, start, start + 1);

    if (!bytes || !reservation || reservation->range.start != start ||
        reservation->range.end - start != bytes || range_find(&mappings, start, start + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    range_remove(&reservations, &reservation->range);
    address_give(start, bytes);
    free(reservation);
    return CUDA_SUCCESS;
}

/* Neighbouring reservations may be used as one. */
static bool vmm_is_reserved(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + bytes;

    while (start < end) {
        const struct vmm_reservation *reservation = range_find(&reservations, start, start + 1);

        if (!reservation)
            return false;
        start = reservation->range.end;
    }
    return true;
}

CUresult vmm_map(uint64_t start, uint64_t bytes, struct vmm_handle *handle)
{
    if (start % DRIVER_BLOCK || !bytes || start + bytes < start)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes != handle->physical->bytes)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!vmm_is_reserved(start, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct vmm_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mapping->range = (struct range){start, start + bytes};
    mapping->handle = handle;
    if (!range_insert(&mappings, &mapping->range)) {
        free(mapping);
        return CUDA_ERROR_INVALID_VALUE;
    }
    vmm_hold(handle, false);
    return CUDA_SUCCESS;
}

/* A mapping is unmapped whole or not at all; holes are legal. */
static bool vmm_cuts_mapping(uint64_t start, uint64_t end)
{
    const struct vmm_mapping *first = vmm_find_mapping(start), *last = vmm_find_mapping(end - 1);

    return (first && first->range.start < start) || (last && last->range.end > end);
}

CUresult vmm_unmap(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + bytes;
    struct vmm_mapping *mapping;

    if (start % DRIVER_BLOCK || !bytes || end < start || !vmm_is_reserved(start, bytes) ||
        vmm_cuts_mapping(start, end))
        return CUDA_ERROR_INVALID_VALUE;
    while ((mapping = range_find(&mappings, start, end)) != NULL) {
        struct vmm_handle *handle = mapping->handle;

        range_remove(&mappings, &mapping->range);
        free(mapping);
        vmm_let_go(handle, false);
    }
    return CUDA_SUCCESS;
}

CUresult vmm_set_access(uint64_t start, uint64_t bytes, bool access)
{
    uint64_t end = start + bytes;
    struct vmm_mapping *mapping;

    if (!bytes || end < start || vmm_cuts_mapping(start, end))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = start; at < end; at = mapping->range.end)
        if ((mapping = vmm_find_mapping(at)) == NULL)
            return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = start; at < end; at = mapping->range.end) {
        mapping = vmm_find_mapping(at);
        mapping->has_access = access;
    }
    return CUDA_SUCCESS;
}
