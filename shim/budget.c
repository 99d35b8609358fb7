/* SPDX-License-Identifier: MIT
 *
 * One counter a device, changed by compare-exchange alone. Check and take are the same instruction:
 * between a check and a later add, another thread would pass the same check.
 */
#include "budget.h"

#include "gpulimit/region.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { BUDGET_GRACE_YIELDS = 200, BUDGET_GRACE_NAPS = 4000 };

static struct budget {
    _Atomic uint64_t limit;
    _Atomic uint64_t used;
    atomic_bool grace;
    _Atomic uint64_t guesses;
} budgets[BUDGET_DEVICES];

void budget_set_limit(unsigned device, uint64_t bytes)
{
    atomic_store_explicit(&budgets[device].limit, bytes, memory_order_relaxed);
}

uint64_t budget_limit(unsigned device)
{
    return atomic_load_explicit(&budgets[device].limit, memory_order_relaxed);
}

uint64_t budget_used(unsigned device)
{
    return atomic_load_explicit(&budgets[device].used, memory_order_relaxed);
}

bool budget_take(unsigned device, uint64_t bytes)
{
    struct budget *budget = &budgets[device];
    uint64_t limit = budget_limit(device);
    uint64_t used = budget_used(device);
    /* Relaxed: the counter guards only itself. What the bytes stand for is ordered by the books'
     * lock. */
    do {
        if (limit != GPULIMIT_NO_LIMIT && (used > limit || bytes > limit - used))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void budget_give(unsigned device, uint64_t bytes)
{
    if (bytes == 0) /* often: a request that cost what it held, or shares a block */
        return;
    atomic_fetch_sub_explicit(&budgets[device].used, bytes, memory_order_relaxed);
}

void budget_adjust(unsigned device, int64_t bytes)
{
    atomic_fetch_add_explicit(&budgets[device].used, (uint64_t)bytes, memory_order_relaxed);
}

bool budget_take_grace(unsigned device)
{
    static const struct timespec nap = {.tv_nsec = 50000};
    for (int tries = 0; tries < BUDGET_GRACE_YIELDS + BUDGET_GRACE_NAPS; tries++) {
        /* Acquire pairs with the release in budget_give_grace: the last holder's undo is over. */
        if (!atomic_exchange_explicit(&budgets[device].grace, true, memory_order_acquire))
            return true;
        if (tries < BUDGET_GRACE_YIELDS)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
    return false;
}

void budget_give_grace(unsigned device)
{
    if (atomic_load(&budgets[device].guesses) % 2 != 0)
        atomic_fetch_add(&budgets[device].guesses, 1);
    atomic_store_explicit(&budgets[device].grace, false, memory_order_release);
}

void budget_guess(unsigned device)
{
    atomic_fetch_add(&budgets[device].guesses, 1);
}

uint64_t budget_guesses(unsigned device)
{
    return atomic_load(&budgets[device].guesses);
}

void budget_reset(void)
{
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        atomic_store_explicit(&budgets[device].used, 0, memory_order_relaxed);
        atomic_store_explicit(&budgets[device].grace, false, memory_order_relaxed);
        atomic_store_explicit(&budgets[device].guesses, 0, memory_order_relaxed);
    }
}
