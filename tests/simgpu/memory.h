/* SPDX-License-Identifier: MIT
 *
 * What lies at an address: one record for each live allocation of any kind but VMM mappings (vmm.h
 * has those). Called under the driver's lock.
 */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "driver.h"
#include "range.h"

#include <sys/queue.h>

enum memory_kind {
    MEMORY_LINEAR,
    MEMORY_MANAGED,
    MEMORY_POOLED,
    MEMORY_GRAPH,  /* of an alloc node: here while it is live */
    MEMORY_GLOBAL, /* a module's variable */
    MEMORY_IMPORTED,
    MEMORY_HOST,
};

struct memory {
    struct range range; /* as large as was asked for */
    enum memory_kind kind;
    CUdevice ordinal;
    CUcontext context;   /* NULL for POOLED and GRAPH */
    struct block *block; /* LINEAR: the shared block it lies in; NULL if it has its own */
    CUmemoryPool pool;   /* POOLED */
    struct graph_allocation *allocation; /* GRAPH */
    struct import *import;               /* IMPORTED */
    uint64_t resident_bytes;             /* MANAGED: from its start, what the device holds of it */
    bool is_leaving; /* linear, freed in stream order: no longer to be freed, but still known */
    LIST_ENTRY(memory) of_owner;  /* context */
    LIST_ENTRY(memory) of_stream; /* while freed in stream order */
};

/* NULL: no memory, or something is there. */
struct memory *memory_insert(enum memory_kind kind, uint64_t start, uint64_t bytes);
void memory_remove(struct memory *memory);          /* frees the record */
struct memory *memory_find(uint64_t address);       /* anywhere inside */
struct memory *memory_find_start(uint64_t address); /* exactly its start */

/* Whether cuMemFree takes it. */
bool memory_is_freeable(const struct memory *memory);

#endif
