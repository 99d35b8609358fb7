/* SPDX-License-Identifier: MIT
 *
 * Which pointers are handles that we gave out: contexts, streams, events, graphs, pools, VMM
 * handles, arrays. A stale or made-up one is then answered with an error instead of a crash. Each
 * such object begins with a struct handle.
 */
#ifndef SIMGPU_HANDLE_H
#define SIMGPU_HANDLE_H

#include "range.h"

enum handle_kind {
    HANDLE_CONTEXT = 1,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_POOL,
    HANDLE_VMM,
    HANDLE_ARRAY,
    HANDLE_MIPMAP,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_MODULE,
    HANDLE_LIBRARY,
    HANDLE_FUNCTION,
    HANDLE_KERNEL,
    HANDLE_GREEN,
    HANDLE_DESC,
    HANDLE_EXTERNAL,
    HANDLE_GRAPHICS,
};

struct handle {
    struct range range;
    enum handle_kind kind;
};

/* Allocates a zeroed object of `bytes` with its handle opened. NULL: no memory. */
void *handle_create(enum handle_kind kind, uint64_t bytes);
void handle_close(struct handle *handle); /* makes it unknown; the object stays */
void handle_destroy(struct handle *handle);
bool handle_is(const void *pointer, enum handle_kind kind);

#endif
