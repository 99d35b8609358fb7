/* SPDX-License-Identifier: MIT
 *
 * The driver of a few lines behind the tests of the gate, see limit_fixture.h.
 */
#include "limit_fixture.h"

#include "books.h"
#include "limit_later.h"
#include "limit_pools.h"
#include "start.h"

#include <stdlib.h>

uint64_t idle_bytes, pool_bytes;
atomic_uint reclaims, looks;

struct pool_reading pool_says(void)
{
    return (struct pool_reading){.number = limit_pool_number(), .reserved_bytes = pool_bytes};
}

static void reclaim(unsigned device)
{
    unsigned cursor = 0;
    uint64_t pool;
    reclaims++;
    while ((pool = limit_pool_pin_next(device, &cursor)) != 0) {
        pool_bytes -= idle_bytes;
        idle_bytes = 0;
        struct pool_reading reading = pool_says();
        limit_pool_answer(pool, &reading);
    }
}

static bool card_free(unsigned device, uint64_t *free_bytes)
{
    (void)device;
    *free_bytes = MIB(7000);
    return true;
}

static void look(unsigned device)
{
    (void)device;
    looks++;
}

static void forget(void)
{
}

int start(void **state)
{
    static const struct start_driver driver = {
        .reclaim = reclaim, .look = look, .card_free = card_free, .forget = forget};
    (void)state;
    setenv("GPU_LIMIT_MB", "1024", 1);
    setenv("GPU_LIMIT_DIR", "/nonexistent", 1); /* the limit needs no ledger file */
    setenv("GPU_LIMIT_VERBOSE", "0", 1);
    if (!start_process(&driver))
        return 1;
    start_add_device(0, "GPU-0", MIB(8192));
    start_add_device(1, "GPU-1", MIB(512));
    return 0;
}

const struct region_totals *totals(unsigned device)
{
    const struct region_totals *found = &books_lock()->ledger.totals[device];
    books_unlock();
    return found;
}

/* Every test leaves nothing behind. */
int assert_nothing_held(void **state)
{
    (void)state;
    assert_int_equal(budget_used(0), 0);
    assert_int_equal(budget_used(1), 0);
    assert_int_equal(totals(0)->live_allocations, 0);
    assert_int_equal(totals(0)->charged_bytes, 0);
    assert_int_equal(totals(0)->requested_bytes, 0);
    reclaims = 0;
    return 0;
}

bool take(enum gpulimit_kind kind, uint64_t owner, uint64_t address, uint64_t bytes)
{
    struct ticket ticket;
    if (!limit_reserve(&ticket, kind, 0, owner, API_cuMemAlloc_v2, bytes))
        return false;
    if (kind == GPULIMIT_KIND_ASYNC)
        ticket.reading = pool_says();
    if (limit_commit(&ticket, address, bytes))
        return true;
    limit_give_up(&ticket);
    return false;
}

void give(uint64_t address)
{
    struct removal removal;
    limit_detach(&removal, address);
    limit_release(&removal);
}

void free_later(uint64_t address)
{
    struct removal removal;
    limit_detach(&removal, address);
    limit_release_later(&removal, STREAM);
}

void synchronize(void)
{
    const struct queue queue = {CONTEXT, STREAM};
    limit_pools_synchronized(&queue, 0, limit_sync_mark());
}
