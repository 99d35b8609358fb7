// SPDX-License-Identifier: MIT
//
// The block rule; see block.h.

#include "block.h"

#include "address.h"
#include "arena.h"
#include "backing.h"

#include <stdlib.h>

#define BLOCK_SPACING 512u

struct block {
    uint64_t start;
    unsigned live; /* requests in it */
    struct arena rest;
    TAILQ_ENTRY(block) of_list;
};

void block_start(struct block_list *list, unsigned gpu, bool low)
{
    TAILQ_INIT(&list->blocks);
    list->gpu = gpu;
    list->is_low = low;
}

static uint64_t block_take_own(const struct block_list *list, uint64_t size)
{
    if (!backing_take(list->gpu, size))
        return 0;
    uint64_t start = list->is_low ? address_take_low(size) : address_take(size, 0);
    if (!start)
        backing_give(list->gpu, size);
    return start;
}

static void block_give_own(const struct block_list *list, uint64_t start, uint64_t size)
{
    address_give(start, size);
    backing_give(list->gpu, size);
}

static struct block *block_create(struct block_list *list)
{
    struct block *block = calloc(1, sizeof *block);

    if (!block)
        return NULL;
    block->start = block_take_own(list, DRIVER_BLOCK);
    if (!block->start)
        goto free_block;
    if (!arena_give(&block->rest, block->start, DRIVER_BLOCK))
        goto give_own;
    TAILQ_INSERT_TAIL(&list->blocks, block, of_list);
    return block;
give_own:
    block_give_own(list, block->start, DRIVER_BLOCK);
free_block:
    free(block);
    return NULL;
}

static void block_destroy(struct block_list *list, struct block *block)
{
    TAILQ_REMOVE(&list->blocks, block, of_list);
    arena_finish(&block->rest);
    block_give_own(list, block->start, DRIVER_BLOCK);
    free(block);
}

uint64_t block_take(struct block_list *list, uint64_t bytes, struct block **shared)
{
    uint64_t size = driver_round(bytes, BLOCK_SPACING), start = 0;
    struct block *block;

    *shared = NULL;
    if (bytes >= DRIVER_BLOCK)
        return block_take_own(list, driver_round(bytes, DRIVER_BLOCK));
    TAILQ_FOREACH(block, &list->blocks, of_list)
    if ((start = arena_take(&block->rest, size, BLOCK_SPACING)) != 0)
        break;
    if (!start) {
        block = block_create(list);
        if (!block)
            return 0;
        start = arena_take(&block->rest, size, BLOCK_SPACING);
    }
    block->live++;
    *shared = block;
    return start;
}

void block_give(struct block_list *list, struct block *block, uint64_t start, uint64_t bytes)
{
    if (!block) {
        block_give_own(list, start, driver_round(bytes, DRIVER_BLOCK));
        return;
    }
    arena_give(&block->rest, start, driver_round(bytes, BLOCK_SPACING));
    if (--block->live == 0)
        block_destroy(list, block);
}
