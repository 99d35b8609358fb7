// SPDX-License-Identifier: MIT
//
// Chunks and the addresses they back; see pool_chunks.h.

#include "pool_chunks.h"

#include "address.h"
#include "backing.h"

#include <stdlib.h>

#define CHUNKS_SPACING   512u
#define CHUNKS_ADDRESSES ((uint64_t)1 << 42) /* of a pool; more than any device has memory */

struct pool_chunk {
    bool is_backed;
    unsigned live;     /* allocations that touch it; only backed chunks have any */
    CUstream freed_on; /* where the last of them was freed; NULL: none, or that stream is gone */
};

static bool chunk_is_idle(const struct pool_chunk *chunk)
{
    return chunk->is_backed && !chunk->live;
}

static uint64_t chunks_end(const struct CUmemPoolHandle_st *pool)
{
    return pool->start + pool->chunks * POOL_CHUNK;
}

static bool chunks_reserve(CUmemoryPool pool, uint64_t bytes)
{
    if (bytes > pool->max_bytes || pool->reserved_bytes > pool->max_bytes - bytes)
        return false;
    uint64_t kept = pool->kept_bytes < bytes ? pool->kept_bytes : bytes;
    if (bytes > kept && pool_is_paid(pool) && !backing_take_once(pool->gpu, bytes - kept))
        return false;
    pool->kept_bytes -= kept;
    pool->reserved_bytes += bytes;
    if (pool->reserved_high_bytes < pool->reserved_bytes)
        pool->reserved_high_bytes = pool->reserved_bytes;
    return true;
}

static void chunks_unreserve(CUmemoryPool pool, uint64_t bytes)
{
    pool->reserved_bytes -= bytes;
    if (!pool_is_paid(pool))
        return;
    if (pool->is_exported)
        pool->kept_bytes += bytes;
    else
        backing_give(pool->gpu, bytes);
}

/* Takes the backing from under up to `most` idle chunks below number `below`, the last first, and
 * returns from how many. Whose the backing is then is the caller's matter. */
static uint64_t chunks_strip(CUmemoryPool pool, uint64_t below, uint64_t most, CUstream stream)
{
    uint64_t stripped = 0;

    for (uint64_t i = below; i-- > 0 && stripped < most;) {
        struct pool_chunk *chunk = &pool->chunk[i];

        if (!chunk_is_idle(chunk) || (stream && chunk->freed_on != stream) ||
            !arena_take_at(&pool->rest, pool->start + i * POOL_CHUNK, POOL_CHUNK))
            continue;
        *chunk = (struct pool_chunk){0};
        stripped++;
    }
    while (pool->chunks && !pool->chunk[pool->chunks - 1].is_backed)
        pool->chunks--;
    return stripped;
}

static uint64_t chunks_count_idle(const struct CUmemPoolHandle_st *pool, uint64_t below)
{
    uint64_t idle = 0;

    for (uint64_t i = 0; i < below; i++)
        idle += chunk_is_idle(&pool->chunk[i]);
    return idle;
}

static bool chunks_make_room(CUmemoryPool pool, uint64_t chunks)
{
    if (!pool->start)
        pool->start = address_take(CHUNKS_ADDRESSES, POOL_CHUNK);
    if (!pool->start || chunks > CHUNKS_ADDRESSES / POOL_CHUNK)
        return false;
    if (chunks <= pool->chunk_room)
        return true;
    struct pool_chunk *grown = realloc(pool->chunk, 2 * chunks * sizeof *grown);
    if (!grown)
        return false;
    pool->chunk = grown;
    pool->chunk_room = 2 * chunks;
    return true;
}

/* Backs what [place, place + size) needs beyond the last backed chunk, where place is the beginning
 * of the free rest before it. Returns place; 0: the device is full or the maximum reached. */
static uint64_t chunks_extend(CUmemoryPool pool, uint64_t size)
{
    if (!chunks_make_room(pool, pool->chunks + size / POOL_CHUNK + 1))
        return 0;
    uint64_t end = chunks_end(pool), place = arena_tail(&pool->rest, end);
    uint64_t more = (place + size - end + POOL_CHUNK - 1) / POOL_CHUNK;
    uint64_t below = (place - pool->start) / POOL_CHUNK;
    uint64_t idle = chunks_count_idle(pool, below);
    uint64_t moved = idle < more ? idle : more;

    if (!chunks_reserve(pool, (more - moved) * POOL_CHUNK))
        return 0;
    if (!arena_give(&pool->rest, end, more * POOL_CHUNK)) {
        chunks_unreserve(pool, (more - moved) * POOL_CHUNK);
        return 0;
    }
    for (uint64_t i = 0; i < more; i++)
        pool->chunk[pool->chunks + i] = (struct pool_chunk){.is_backed = true};
    pool->chunks += more;
    chunks_strip(pool, below, moved, NULL);
    return arena_take_at(&pool->rest, place, size) ? place : 0;
}

static void chunks_count_live(CUmemoryPool pool, uint64_t start, uint64_t size, int change,
                              CUstream freed_on)
{
    uint64_t last = (start + size - 1 - pool->start) / POOL_CHUNK;

    for (uint64_t i = (start - pool->start) / POOL_CHUNK; i <= last; i++) {
        pool->chunk[i].live += (unsigned)change;
        pool->chunk[i].freed_on = freed_on;
    }
}

uint64_t chunks_take(CUmemoryPool pool, uint64_t bytes)
{
    if (bytes > CHUNKS_ADDRESSES)
        return 0;
    uint64_t size = driver_round(bytes, CHUNKS_SPACING);
    uint64_t start = arena_take(&pool->rest, size, CHUNKS_SPACING);
    if (!start)
        start = chunks_extend(pool, size);
    if (!start) {
        /* Costs idle chunks of this pool too, so the need is counted afresh. */
        backing_reclaim(pool->gpu);
        start = chunks_extend(pool, size);
    }
    if (start)
        chunks_count_live(pool, start, size, 1, NULL);
    return start;
}

void chunks_give(CUmemoryPool pool, uint64_t start, uint64_t bytes, CUstream stream)
{
    uint64_t size = driver_round(bytes, CHUNKS_SPACING);

    arena_give(&pool->rest, start, size);
    chunks_count_live(pool, start, size, -1, stream);
}

void chunks_trim(CUmemoryPool pool, uint64_t bytes_to_keep, CUstream stream)
{
    if (pool->reserved_bytes <= bytes_to_keep)
        return;
    uint64_t excess = (pool->reserved_bytes - bytes_to_keep + POOL_CHUNK - 1) / POOL_CHUNK;

    chunks_unreserve(pool, chunks_strip(pool, pool->chunks, excess, stream) * POOL_CHUNK);
}

void chunks_forget_stream(CUmemoryPool pool, CUstream stream)
{
    for (uint64_t i = 0; i < pool->chunks; i++)
        if (pool->chunk[i].freed_on == stream)
            pool->chunk[i].freed_on = NULL;
}

void chunks_finish(CUmemoryPool pool)
{
    pool->is_exported = false;
    chunks_trim(pool, 0, NULL);
    backing_give(pool->gpu, pool->kept_bytes);
    if (pool->start)
        address_give(pool->start, CHUNKS_ADDRESSES);
    arena_finish(&pool->rest);
    free(pool->chunk);
}
