// SPDX-License-Identifier: MIT
//
// Pools as a whole: their life, their reserve, when it goes back. Where in a pool an allocation
// lies is pool_chunks.c's matter.

#include "pool.h"

#include "pool_chunks.h"
#include "process.h"

#include <stdlib.h>

static TAILQ_HEAD(, CUmemPoolHandle_st) pools = TAILQ_HEAD_INITIALIZER(pools);
static LIST_HEAD(, pool_choice) choices = LIST_HEAD_INITIALIZER(choices);

struct pool_choice *pool_choose(CUmemLocation location, CUmemAllocationType type)
{
    struct pool_choice *choice;
    unsigned gpu = 0;

    LIST_FOREACH(choice, &choices, of_process)
    if (choice->location.type == location.type && choice->location.id == location.id &&
        choice->type == type)
        return choice;
    choice = calloc(1, sizeof *choice);
    if (!choice)
        return NULL;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        process_find_gpu(location.id, &gpu);
    choice->location = location;
    choice->type = type;
    choice->current = choice->by_default = pool_create(location, gpu, 0);
    if (!choice->by_default) {
        free(choice);
        return NULL;
    }
    choice->by_default->type = type;
    choice->by_default->is_default = true;
    LIST_INSERT_HEAD(&choices, choice, of_process);
    return choice;
}

static struct pool_choice *pool_choice_of(CUdevice ordinal)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};

    return pool_choose(location, CU_MEM_ALLOCATION_TYPE_PINNED);
}

CUresult pool_start(void)
{
    for (unsigned i = 0; i < process.visible; i++)
        if (!pool_choice_of((CUdevice)i))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

bool pool_is_usable(const void *handle)
{
    const struct CUmemPoolHandle_st *pool = handle;

    return handle_is(pool, HANDLE_POOL) && !pool->is_imported;
}

bool pool_is_paid(const struct CUmemPoolHandle_st *pool)
{
    return pool->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           pool->type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

CUmemoryPool pool_create(CUmemLocation location, unsigned gpu, uint64_t max_bytes)
{
    CUmemoryPool pool = handle_create(HANDLE_POOL, sizeof *pool);

    if (!pool)
        return NULL;
    pool->location = location;
    pool->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->gpu = gpu;
    pool->max_bytes = max_bytes ? driver_round(max_bytes, POOL_CHUNK) : UINT64_MAX;
    for (unsigned i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    TAILQ_INSERT_TAIL(&pools, pool, of_process);
    return pool;
}

static void pool_end(CUmemoryPool pool)
{
    chunks_finish(pool);
    TAILQ_REMOVE(&pools, pool, of_process);
    free(pool);
}

void pool_destroy(CUmemoryPool pool)
{
    struct pool_choice *choice;

    LIST_FOREACH(choice, &choices, of_process)
    if (choice->current == pool)
        choice->current = choice->by_default;
    handle_close(&pool->handle);
    pool->is_destroyed = true;
    if (!pool->live)
        pool_end(pool);
}

CUmemoryPool pool_default(CUdevice ordinal)
{
    return pool_choice_of(ordinal)->by_default;
}

CUmemoryPool pool_of_device(CUdevice ordinal)
{
    return pool_choice_of(ordinal)->current;
}

void pool_set_of_device(CUdevice ordinal, CUmemoryPool pool)
{
    pool_choice_of(ordinal)->current = pool;
}

struct memory *pool_allocate(CUmemoryPool pool, uint64_t bytes)
{
    uint64_t start = chunks_take(pool, bytes);
    struct memory *memory = start ? memory_insert(MEMORY_POOLED, start, bytes) : NULL;

    if (!memory) {
        if (start)
            chunks_give(pool, start, bytes, NULL);
        return NULL;
    }
    memory->pool = pool;
    memory->ordinal = pool->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? pool->location.id : 0;
    pool->live++;
    pool->used_bytes += bytes;
    if (pool->used_high_bytes < pool->used_bytes)
        pool->used_high_bytes = pool->used_bytes;
    return memory;
}

static void pool_settle(CUmemoryPool pool, CUstream stream)
{
    /* Unlike cuMemPoolTrimTo, this goes below the threshold rather than stay above it. */
    chunks_trim(pool, pool->threshold_bytes / POOL_CHUNK * POOL_CHUNK, stream);
}

void pool_free(struct memory *memory, CUstream stream)
{
    CUmemoryPool pool = memory->pool;
    uint64_t start = memory->range.start, bytes = memory->range.end - start;

    memory_remove(memory);
    chunks_give(pool, start, bytes, stream);
    pool->live--;
    if (stream)
        pool->used_bytes -= bytes;
    else
        pool_settle(pool, NULL);
    if (!pool->is_destroyed || pool->live)
        return;
    pool->ends_on = stream;
    if (!stream)
        pool_end(pool);
}

static void pool_end_all(CUstream stream)
{
    CUmemoryPool pool = TAILQ_FIRST(&pools), next;

    for (; pool; pool = next) {
        next = TAILQ_NEXT(pool, of_process);
        if (pool->ends_on == stream)
            pool_end(pool);
    }
}

void pool_trim(CUmemoryPool pool, uint64_t bytes_to_keep)
{
    if (bytes_to_keep < pool->reserved_bytes)
        chunks_trim(pool, driver_round(bytes_to_keep, POOL_CHUNK), NULL);
}

void pool_trim_all(unsigned gpu)
{
    struct CUmemPoolHandle_st *pool;

    TAILQ_FOREACH(pool, &pools, of_process)
    if (pool->gpu == gpu && pool_is_paid(pool))
        chunks_trim(pool, 0, NULL);
}

void pool_synchronize(CUstream stream)
{
    struct CUmemPoolHandle_st *pool;

    pool_end_all(stream);
    TAILQ_FOREACH(pool, &pools, of_process)
    pool_settle(pool, stream);
}

void pool_forget_stream(CUstream stream)
{
    struct CUmemPoolHandle_st *pool;

    pool_end_all(stream);
    TAILQ_FOREACH(pool, &pools, of_process)
    chunks_forget_stream(pool, stream);
}
