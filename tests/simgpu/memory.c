// SPDX-License-Identifier: MIT
//
// Allocations by address; see memory.h.

#include "memory.h"

#include "import.h"

#include <stdlib.h>

static struct range_set memories;

struct memory *memory_insert(enum memory_kind kind, uint64_t start, uint64_t bytes)
{
    struct memory *memory = calloc(1, sizeof *memory);

    if (!memory)
        return NULL;
    memory->kind = kind;
    memory->range = (struct range){start, start + bytes};
    if (range_insert(&memories, &memory->range))
        return memory;
    free(memory);
    return NULL;
}

void memory_remove(struct memory *memory)
{
    range_remove(&memories, &memory->range);
    free(memory);
}

struct memory *memory_find(uint64_t address)
{
    return range_find(&memories, address, address + 1);
}

struct memory *memory_find_start(uint64_t address)
{
    struct memory *memory = memory_find(address);

    return memory && memory->range.start == address && !memory->is_leaving ? memory : NULL;
}

bool memory_is_freeable(const struct memory *memory)
{
    switch (memory->kind) {
    case MEMORY_LINEAR:
    case MEMORY_MANAGED:
    case MEMORY_POOLED:
    case MEMORY_GRAPH:
        return true;
    case MEMORY_IMPORTED:
        return memory->import->kind != IMPORT_IPC;
    case MEMORY_GLOBAL:
    case MEMORY_HOST:
        break;
    }
    return false;
}
