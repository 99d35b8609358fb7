/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that is about pools as such, see limit_pools.h.
 */
#include "limit_pools.h"

#include "limit_books.h"

#include <sched.h>
#include <stdatomic.h>

struct pool *limit_pool_of(struct books *books, const struct ticket *ticket)
{
    if (ticket->kind == GPULIMIT_KIND_ASYNC)
        return &books->pools.places[ticket->pool];
    if (ticket->kind == GPULIMIT_KIND_GRAPH)
        return &books->graph_memory[ticket->device];
    return NULL;
}

static _Atomic uintptr_t limit_first_thread; /* the address of something of its own; 0 none yet */
static atomic_bool limit_has_threads;

void limit_note_thread(void)
{
    static _Thread_local char mine __attribute__((tls_model("initial-exec")));
    uintptr_t first = atomic_load_explicit(&limit_first_thread, memory_order_relaxed);
    if (first == (uintptr_t)&mine)
        return;
    if (first != 0 ||
        !atomic_compare_exchange_strong(&limit_first_thread, &first, (uintptr_t)&mine))
        atomic_store_explicit(&limit_has_threads, true, memory_order_relaxed);
}

bool limit_is_threaded(void)
{
    return atomic_load_explicit(&limit_has_threads, memory_order_relaxed);
}

bool limit_begin_in_pool(struct ticket *ticket)
{
    if (ticket->kind != GPULIMIT_KIND_ASYNC && ticket->kind != GPULIMIT_KIND_GRAPH)
        return true;
    limit_note_thread();
    if (!limit_counts_requests())
        ticket->pool_bytes = ticket->held_bytes;
    struct books *books = books_lock();
    struct pool *pool = ticket->kind == GPULIMIT_KIND_GRAPH
                            ? limit_pool_of(books, ticket)
                            : pools_insert(&books->pools, ticket->owner, (int)ticket->device);
    if (pool) {
        ticket->pool_number = pools_begin(pool, ticket->pool_bytes);
        if (ticket->kind == GPULIMIT_KIND_ASYNC) {
            pool->live++; /* from now on, so that its place outlives a destruction meanwhile */
            ticket->pool = (uint16_t)(pool - books->pools.places);
        }
    }
    books_unlock();
    return pool != NULL;
}

static void limit_end_if_over(struct books *books, struct pool *pool)
{
    if (!pools_is_over(pool))
        return;
    if (pool->device != POOLS_HOST)
        limit_note_change(books, (unsigned)pool->device, GPULIMIT_KIND_ASYNC,
                          -(int64_t)pool->reserved_bytes);
    pools_remove(pool);
}

void limit_leave_pool(struct books *books, uint16_t place)
{
    struct pool *pool = &books->pools.places[place];
    pool->live--;
    limit_end_if_over(books, pool);
}

void limit_leave_pool_later(struct books *books, uint16_t place, uint64_t stream)
{
    struct pool *pool = &books->pools.places[place];
    pool->live--;
    pools_free_on(pool, stream, ++books->ledger.serial);
}

void limit_pools_synchronized(const struct queue *queue, unsigned device, uint64_t mark)
{
    /* These are some context's, and which one a pool's memory was freed in is not kept: contexts of
     * the same device pass for one. */
    bool is_of_context =
        queue->stream == QUEUE_EVERY_STREAM || queue->stream == QUEUE_LEGACY_STREAM;
    struct books *books = books_lock();
    for (unsigned i = 0; i < books->pools.used; i++) {
        struct pool *pool = &books->pools.places[i];
        if (pool->freed_on == 0 || (is_of_context && pool->device != (int)device))
            continue;
        pools_synchronize(pool, queue->stream, mark);
        limit_end_if_over(books, pool);
    }
    books_unlock();
}

void limit_pools_stream_ends(uint64_t stream)
{
    struct books *books = books_lock();
    for (unsigned i = 0; i < books->pools.used; i++) {
        if (books->pools.places[i].freed_on == stream)
            books->pools.places[i].freed_on = QUEUE_THREAD_STREAM;
    }
    books_unlock();
}

bool limit_pools_await(const struct books *books)
{
    for (unsigned i = 0; i < books->pools.used; i++) {
        if (books->pools.places[i].freed_on != 0)
            return true;
    }
    return false;
}

void limit_give_surplus(struct books *books, const struct ticket *ticket, uint64_t bytes)
{
    struct pool *pool = limit_pool_of(books, ticket);
    if (pool && pool->has_grace)
        pool->spare_bytes += bytes;
    else
        budget_give(ticket->device, bytes);
}

void limit_end_grace(struct books *books, struct ticket *ticket)
{
    struct pool *pool = limit_pool_of(books, ticket);
    if (!pool || !ticket->has_grace)
        return;
    ticket->held_bytes += pool->spare_bytes;
    pool->spare_bytes = 0;
    pool->has_grace = false;
}

struct holes *limit_holes(struct books *books, const struct ledger_entry *entry)
{
    return &books->pools.places[entry->pool].holes;
}

void limit_pool_created(uint64_t pool, int device, bool is_managed)
{
    struct books *books = books_lock();
    struct pool *created = pools_insert(&books->pools, pool, device);
    if (created)
        created->is_managed = is_managed;
    books_unlock();
}

bool limit_pool_device(uint64_t pool, int *device)
{
    struct books *books = books_lock();
    const struct pool *found = pools_find(&books->pools, pool);
    if (found)
        *device = found->device;
    books_unlock();
    return found != NULL;
}

uint64_t limit_pool_number(void)
{
    static _Atomic uint64_t number;
    /* Sequentially consistent: of two readings, the one numbered later is asked of the driver
     * later. */
    return atomic_fetch_add(&number, 1) + 1;
}

uint64_t limit_pool_pin_next(unsigned device, unsigned *cursor)
{
    uint64_t handle = 0;
    struct books *books = books_lock();
    while (handle == 0 && *cursor < books->pools.used) {
        struct pool *pool = &books->pools.places[(*cursor)++];
        if (pool->handle != 0 && pool->device == (int)device && !pool->is_closing) {
            pool->pinned++;
            handle = pool->handle;
        }
    }
    books_unlock();
    return handle;
}

static void limit_pool_take_in(struct books *books, struct pool *pool,
                               const struct pool_reading *reading)
{
    if (reading && pool->device != POOLS_HOST)
        limit_note_change(books, (unsigned)pool->device, GPULIMIT_KIND_ASYNC,
                          pools_update(pool, reading));
}

void limit_pool_answer(uint64_t pool, const struct pool_reading *reading)
{
    struct books *books = books_lock();
    struct pool *pinned = pools_find(&books->pools, pool);
    if (pinned) {
        pinned->pinned--;
        limit_pool_take_in(books, pinned, reading);
    }
    books_unlock();
}

void limit_pool_update(uint64_t pool, const struct pool_reading *reading)
{
    struct books *books = books_lock();
    struct pool *known = pools_find(&books->pools, pool);
    if (known)
        limit_pool_take_in(books, known, reading);
    books_unlock();
}

void limit_pool_detach(uint64_t pool)
{
    for (;;) {
        struct books *books = books_lock();
        struct pool *found = pools_find(&books->pools, pool);
        bool is_free = !found || found->pinned == 0;
        if (found)
            found->is_closing = true;
        books_unlock();
        if (is_free)
            return;
        sched_yield(); /* for as long as one reading takes, some 31 ns, or one trim */
    }
}

void limit_pool_release(uint64_t pool)
{
    struct books *books = books_lock();
    struct pool *dead = pools_find(&books->pools, pool);
    if (dead) {
        dead->handle = 0; /* the driver may hand the value out again */
        limit_end_if_over(books, dead);
    }
    books_unlock();
}

void limit_pool_restore(uint64_t pool)
{
    struct books *books = books_lock();
    struct pool *alive = pools_find(&books->pools, pool);
    if (alive)
        alive->is_closing = false;
    books_unlock();
}
