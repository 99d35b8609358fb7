// SPDX-License-Identifier: MIT
//
// The block rule; see linear.h.

#include "linear.h"

#include "address.h"
#include "arena.h"
#include "backing.h"

#include <stdlib.h>

#define LINEAR_SPACING 512u
#define LINEAR_MAX     ((uint64_t)1 << 50)
#define MANAGED_MAX    ((uint64_t)1 << 46) /* 64 TiB succeeds, 128 does not */

struct block {
    uint64_t start;
    unsigned live; /* allocations in it */
    bool is_low;
    struct arena rest;
    TAILQ_ENTRY(block) of_context;
};

static struct block *block_create(CUcontext context, bool low)
{
    struct block *block = calloc(1, sizeof *block);

    if (!block)
        return NULL;
    if (!backing_take(context->gpu, DRIVER_BLOCK))
        goto free_block;
    block->is_low = low;
    block->start = low ? address_take_low(DRIVER_BLOCK) : address_take(DRIVER_BLOCK, 0);
    if (!block->start)
        goto give_backing;
    if (!arena_give(&block->rest, block->start, DRIVER_BLOCK))
        goto give_address;
    TAILQ_INSERT_TAIL(&context->blocks[low], block, of_context);
    return block;
give_address:
    address_give(block->start, DRIVER_BLOCK);
give_backing:
    backing_give(context->gpu, DRIVER_BLOCK);
free_block:
    free(block);
    return NULL;
}

static void block_destroy(CUcontext context, struct block *block)
{
    TAILQ_REMOVE(&context->blocks[block->is_low], block, of_context);
    arena_finish(&block->rest);
    address_give(block->start, DRIVER_BLOCK);
    backing_give(context->gpu, DRIVER_BLOCK);
    free(block);
}

static struct memory *linear_allocate_small(CUcontext context, uint64_t bytes, bool low)
{
    uint64_t size = driver_round(bytes, LINEAR_SPACING), start = 0;
    struct block *block;

    TAILQ_FOREACH(block, &context->blocks[low], of_context)
    if ((start = arena_take(&block->rest, size, LINEAR_SPACING)) != 0)
        break;
    if (!start) {
        block = block_create(context, low);
        if (!block)
            return NULL;
        start = arena_take(&block->rest, size, LINEAR_SPACING);
    }
    struct memory *memory = start ? memory_insert(MEMORY_LINEAR, start, bytes) : NULL;
    if (memory) {
        memory->block = block;
        block->live++;
    } else if (start) {
        arena_give(&block->rest, start, size);
    }
    if (!block->live)
        block_destroy(context, block);
    return memory;
}

static struct memory *linear_allocate_large(CUcontext context, uint64_t bytes, bool low)
{
    uint64_t size = driver_round(bytes, DRIVER_BLOCK);

    if (!backing_take(context->gpu, size))
        return NULL;
    uint64_t start = low ? address_take_low(size) : address_take(size, 0);
    struct memory *memory = start ? memory_insert(MEMORY_LINEAR, start, bytes) : NULL;
    if (!memory) {
        if (start)
            address_give(start, size);
        backing_give(context->gpu, size);
    }
    return memory;
}

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
    if (bytes > LINEAR_MAX)
        return NULL;
    return linear_own(bytes < DRIVER_BLOCK ? linear_allocate_small(context, bytes, low)
                                           : linear_allocate_large(context, bytes, low),
                      context);
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

void linear_free(struct memory *memory)
{
    uint64_t start = memory->range.start, bytes = memory->range.end - start;

    LIST_REMOVE(memory, of_owner);
    if (memory->is_leaving)
        LIST_REMOVE(memory, of_stream);
    if (memory->kind == MEMORY_HOST) {
        free((void *)(uintptr_t)start);
    } else if (memory->block) {
        struct block *block = memory->block;

        arena_give(&block->rest, start, driver_round(bytes, LINEAR_SPACING));
        if (--block->live == 0)
            block_destroy(memory->context, block);
    } else {
        address_give(start, driver_round(bytes, DRIVER_BLOCK));
        if (memory->kind == MEMORY_LINEAR)
            backing_give(memory->context->gpu, driver_round(bytes, DRIVER_BLOCK));
    }
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
