// SPDX-License-Identifier: MIT
//
// Memory that belongs to a context; see linear.h.

#include "linear.h"

#include "address.h"
#include "backing.h"

#include <stdlib.h>

#define LINEAR_MAX  ((uint64_t)1 << 50)
#define MANAGED_MAX ((uint64_t)1 << 46) /* 64 TiB succeeds, 128 does not */

static struct memory *linear_own(struct memory *memory, CUcontext context)
{
    if (memory) {
        memory->context = context;
        memory->ordinal = context->ordinal;
        LIST_INSERT_HEAD(&context->memories, memory, of_owner);
    }
    return memory;
}

struct memory *linear_allocate(CUcontext context, uint64_t bytes, bool low)
{
    struct block_list *list = low ? &context->low : &context->linear;
    struct block *block;

    if (bytes > LINEAR_MAX)
        return NULL;
    uint64_t start = block_take(list, bytes, &block);
    struct memory *memory = start ? memory_insert(MEMORY_LINEAR, start, bytes) : NULL;
    if (memory)
        memory->block = block;
    else if (start)
        block_give(list, block, start, bytes);
    return linear_own(memory, context);
}

struct memory *linear_allocate_managed(CUcontext context, uint64_t bytes)
{
    if (bytes > MANAGED_MAX)
        return NULL;
    uint64_t size = driver_round(bytes, DRIVER_BLOCK), start = address_take(size, 0);
    struct memory *memory = start ? memory_insert(MEMORY_MANAGED, start, bytes) : NULL;
    if (start && !memory)
        address_give(start, size);
    return linear_own(memory, context);
}

struct memory *linear_allocate_host(CUcontext context, uint64_t bytes)
{
    void *pages = bytes <= LINEAR_MAX ? aligned_alloc(4096, driver_round(bytes, 4096)) : NULL;
    struct memory *memory = pages ? memory_insert(MEMORY_HOST, (uintptr_t)pages, bytes) : NULL;

    if (!memory)
        free(pages);
    return linear_own(memory, context);
}

void linear_touch(struct memory *memory, uint64_t bytes)
{
    unsigned gpu = memory->context->gpu;
    uint64_t size = driver_round(bytes, DRIVER_BLOCK);

    if (size <= memory->resident_bytes || !backing_take(gpu, size - memory->resident_bytes))
        return;
    backing_hide(gpu, (int64_t)(size - memory->resident_bytes));
    memory->resident_bytes = size;
}

static void linear_evict(struct memory *memory)
{
    if (!memory->resident_bytes)
        return;
    backing_hide(memory->context->gpu, -(int64_t)memory->resident_bytes);
    backing_give(memory->context->gpu, memory->resident_bytes);
}

void linear_free(struct memory *memory)
{
    uint64_t start = memory->range.start, bytes = memory->range.end - start;

    LIST_REMOVE(memory, of_owner);
    linear_evict(memory);
    if (memory->is_leaving)
        LIST_REMOVE(memory, of_stream);
    if (memory->kind == MEMORY_HOST)
        free((void *)(uintptr_t)start);
    else if (memory->kind == MEMORY_MANAGED)
        address_give(start, driver_round(bytes, DRIVER_BLOCK));
    else
        block_give(address_is_low(start) ? &memory->context->low : &memory->context->linear,
                   memory->block, start, bytes);
    memory_remove(memory);
}

void linear_free_later(struct memory *memory, CUstream stream)
{
    memory->is_leaving =
        true; /* a driver quirk: queries know its address until the stream settles */
    LIST_INSERT_HEAD(&stream->freed, memory, of_stream);
}

void linear_settle(CUstream stream)
{
    while (!LIST_EMPTY(&stream->freed))
        linear_free(LIST_FIRST(&stream->freed));
}

void linear_free_context(CUcontext context)
{
    while (!LIST_EMPTY(&context->memories))
        linear_free(LIST_FIRST(&context->memories));
}
