// SPDX-License-Identifier: MIT
//
// The set of live handles; see handle.h. Called under the driver's lock.

#include "handle.h"

#include <stdlib.h>

static struct range_set handles;

void *handle_create(enum handle_kind kind, uint64_t bytes)
{
    struct handle *handle = calloc(1, bytes);

    if (!handle)
        return NULL;
    handle->range = (struct range){(uintptr_t)handle, (uintptr_t)handle + 1};
    handle->kind = kind;
    if (range_insert(&handles, &handle->range))
        return handle;
    free(handle);
    return NULL;
}

void handle_close(struct handle *handle)
{
    range_remove(&handles, &handle->range);
}

void handle_destroy(struct handle *handle)
{
    handle_close(handle);
    free(handle);
}

bool handle_is(const void *pointer, enum handle_kind kind)
{
    const struct handle *handle =
        pointer ? range_find(&handles, (uintptr_t)pointer, (uintptr_t)pointer + 1) : NULL;

    return handle && handle->kind == kind;
}
