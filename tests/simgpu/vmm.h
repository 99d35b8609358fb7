/* SPDX-License-Identifier: MIT
 *
 * Virtual memory management: physical memory, the handles that own it, reserved addresses, and the
 * mappings of one onto the other. Memory lives while a handle, a mapping, or a descriptor exported
 * for it does. Called under the driver's lock.
 */
#ifndef SIMGPU_VMM_H
#define SIMGPU_VMM_H

#include "driver.h"
#include "handle.h"

#include <sys/queue.h>

/* What cuMemCreate takes from a device. */
struct vmm_physical {
    CUmemAllocationProp prop;
    uint64_t bytes;
    unsigned gpu;
    bool is_paid;   /* by this process: neither on the host nor imported from another one */
    bool is_hidden; /* only a descriptor or an array keeps it: NVML does not count it for the
                       process any more, as measured (driver 580.159) */
    unsigned uses;  /* handles and mappings */
    int exported; /* our end of the pipe whose other ends are the exported descriptors; -1: none */
    int imported; /* the descriptor that keeps another process's memory alive; -1: none */
    LIST_ENTRY(vmm_physical) of_process;
};

struct vmm_handle {
    struct handle handle;
    struct vmm_physical *physical;
    unsigned references; /* 0: released, and known only to its mappings, which can retain it */
    unsigned mappings;
    unsigned holds; /* of those, the ones of no address: in arrays */
};

struct vmm_mapping {
    struct range range;
    struct vmm_handle *handle;
    bool has_access;
};

/* NULL: the device is full. */
struct vmm_handle *vmm_create(const CUmemAllocationProp *prop, unsigned gpu, uint64_t bytes,
                              bool paid);
struct vmm_handle *vmm_open(struct vmm_physical *physical); /* one more handle on it */
void vmm_release(struct vmm_handle *handle);

/* The handle of that value, if it has references. NULL: none. */
struct vmm_handle *vmm_find_handle(CUmemGenericAllocationHandle value);
struct vmm_mapping *vmm_find_mapping(uint64_t address);

uint64_t vmm_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint); /* 0: no addresses */
CUresult vmm_unreserve(uint64_t start, uint64_t bytes);
CUresult vmm_map(uint64_t start, uint64_t bytes, struct vmm_handle *handle);
CUresult vmm_unmap(uint64_t start, uint64_t bytes);
void vmm_hold(struct vmm_handle *handle,
              bool in_array); /* one mapping more; in_array: of no address */
void vmm_let_go(struct vmm_handle *handle, bool in_array);
CUresult vmm_set_access(uint64_t start, uint64_t bytes, bool access);

/* Frees the memory that only exported descriptors kept alive and whose descriptors have since been
 * closed. Nobody tells the driver's stand-in when that happens, so whoever wants exact figures asks
 * first. */
void vmm_collect(void);

/* An exported descriptor, and back. -1, NULL: failed. */
int vmm_export(struct vmm_handle *handle);
struct vmm_handle *vmm_import(int descriptor);

/* For vmm.c and vmm_share.c. */
LIST_HEAD(vmm_list, vmm_physical);
extern struct vmm_list vmm_physicals;
bool vmm_is_exported(const struct vmm_physical *physical); /* a descriptor is open somewhere */

#endif
