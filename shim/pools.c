/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of pools.h.
 */
#include "pools.h"

#include <stddef.h>
#include <string.h>

uint64_t pools_most(uint64_t bytes)
{
    if (bytes > UINT64_MAX - (HOLES_CHUNK_BYTES - 1))
        return UINT64_MAX;
    return (bytes + HOLES_CHUNK_BYTES - 1) / HOLES_CHUNK_BYTES * HOLES_CHUNK_BYTES;
}

struct pool *pools_find(struct pools *pools, uint64_t handle)
{
    for (unsigned i = 0; handle != 0 && i < pools->used; i++) {
        if (pools->places[i].handle == handle)
            return &pools->places[i];
    }
    return NULL;
}

static struct pool *pools_free_place(struct pools *pools)
{
    for (unsigned i = 0; i < pools->used; i++) {
        if (!pools->places[i].in_use)
            return &pools->places[i];
    }
    return pools->used < POOLS_MAX ? &pools->places[pools->used++] : NULL;
}

struct pool *pools_insert(struct pools *pools, uint64_t handle, int device)
{
    struct pool *pool = pools_find(pools, handle);
    if (pool)
        return pool;
    pool = pools_free_place(pools);
    if (pool)
        *pool = (struct pool){.in_use = true, .handle = handle, .device = device};
    return pool;
}

void pools_remove(struct pool *pool)
{
    memset(pool, 0, sizeof *pool); /* not by a compound literal: it would go over the stack */
}

void pools_free_on(struct pool *pool, uint64_t stream, uint64_t serial)
{
    bool is_same = pool->freed_on == 0 || pool->freed_on == stream;
    pool->freed_on = is_same ? stream : QUEUE_THREAD_STREAM;
    pool->freed_serial = serial;
}

void pools_synchronize(struct pool *pool, uint64_t stream, uint64_t mark)
{
    bool is_it =
        stream == QUEUE_EVERY_STREAM || (stream == pool->freed_on && stream != QUEUE_THREAD_STREAM);
    if (is_it && pool->freed_serial <= mark)
        pool->freed_on = 0;
}

bool pools_is_over(const struct pool *pool)
{
    return pool->in_use && pool->handle == 0 && pool->live == 0 && pool->freed_on == 0;
}

void pools_clear(struct pools *pools)
{
    while (pools->used > 0)
        pools_remove(&pools->places[--pools->used]);
}

static void pools_answer(struct pool *pool, const struct pool_reading *reading)
{
    if (reading->number <= pool->answered)
        return;
    if (reading->reserved_bytes < pool->answer_bytes)
        holes_shrink(&pool->holes);
    pool->answered = reading->number;
    pool->answer_bytes = reading->reserved_bytes;
}

/* Charges the pool with what the latest reading says, but of growth, while others are under way,
 * with no more than room_bytes. */
static int64_t pools_settle(struct pool *pool, uint64_t room_bytes)
{
    uint64_t before = pool->reserved_bytes;
    uint64_t after = pool->answer_bytes;
    if (pool->pending_bytes > 0 && after > before && after - before > room_bytes)
        after = before + room_bytes;
    pool->reserved_bytes = after;
    return (int64_t)(after - before);
}

uint32_t pools_begin(struct pool *pool, uint64_t held_bytes)
{
    pool->pending_bytes += held_bytes;
    if (++pool->begun == 0)
        pool->begun = 1;
    return pool->under_way++ > 0 ? 0 : pool->begun;
}

bool pools_was_alone(const struct pool *pool, uint32_t number)
{
    return number != 0 && pool->begun == number;
}

int64_t pools_end(struct pool *pool, uint64_t held_bytes, const struct pool_reading *reading)
{
    pools_answer(pool, reading);
    pool->pending_bytes -= held_bytes;
    pool->under_way--;
    return pools_settle(pool, held_bytes);
}

int64_t pools_cancel(struct pool *pool, uint64_t held_bytes)
{
    pool->pending_bytes -= held_bytes;
    pool->under_way--;
    return pools_settle(pool, 0);
}

int64_t pools_update(struct pool *pool, const struct pool_reading *reading)
{
    pools_answer(pool, reading);
    return pools_settle(pool, 0);
}
