/* SPDX-License-Identifier: MIT
 *
 * Contexts: what they cost, which one is current in a thread, and what goes with them. Called under
 * the driver's lock.
 */
#ifndef SIMGPU_CONTEXT_H
#define SIMGPU_CONTEXT_H

#include "block.h"
#include "handle.h"
#include "overhead.h"
#include "stream.h"

#include <sys/queue.h>

struct memory;

struct CUctx_st {
    struct handle handle; /* never closed: a destroyed context stays known, and answers 709 */
    CUdevice ordinal;
    unsigned gpu;
    bool is_primary;
    bool is_alive;
    unsigned users; /* retains of the primary context, attaches of others */
    unsigned flags;
    unsigned api_version;
    struct block_list linear, low, array, module;
    LIST_HEAD(, memory) memories;     /* what dies with it */
    LIST_HEAD(, CUstream_st) streams; /* those that the program created */
    LIST_HEAD(, CUevent_st) events;
    LIST_HEAD(, CUarray_st) arrays;
    LIST_HEAD(, CUmipmappedArray_st) mipmaps;
    LIST_HEAD(, CUmod_st) modules;
    uint64_t limit[CU_LIMIT_MAX];
    struct overhead overhead;
    struct CUstream_st *legacy, *per_thread; /* what stream 0 means */
    LIST_ENTRY(CUctx_st) of_process;
};

LIST_HEAD(context_list, CUctx_st);
extern struct context_list contexts;

/* The primary context's object, made on first use; alive only while retained. NULL: no memory. */
CUcontext context_primary(CUdevice ordinal);
CUcontext context_create(CUdevice ordinal, unsigned flags, unsigned api_version);

/* Pays for the context and brings it to life.
 *   2: the device is full. */
CUresult context_revive(CUcontext context);

/* Takes its memory, streams, events and modules with it. */
void context_end(CUcontext context);

bool context_flags_are_legal(unsigned flags);

/* The calling thread's context.
 *   201: none. 709: it was destroyed. */
CUresult context_current(CUcontext *context);
CUcontext context_top(void); /* the same, dead or alive; NULL: none */
CUresult context_push(CUcontext context);
CUresult context_pop(CUcontext *context);
void context_set(CUcontext context); /* replaces the top; NULL pops it */

#endif
