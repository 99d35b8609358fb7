// SPDX-License-Identifier: MIT
//
// Device memory; see backing.h.

#include "backing.h"

#include "graph_memory.h"
#include "pool.h"
#include "process.h"
#include "state.h"
#include "vmm.h"

bool backing_take_once(unsigned gpu, uint64_t bytes)
{
    return state_grow(gpu, bytes, process.config.memory_bytes);
}

void backing_reclaim(unsigned gpu)
{
    vmm_collect();
    pool_trim_all(gpu);
    graph_memory_trim(gpu);
}

bool backing_take(unsigned gpu, uint64_t bytes)
{
    if (backing_take_once(gpu, bytes))
        return true;
    /* The driver takes back what pools and graphs keep idle, whatever a pool's threshold, before it
     * gives up. */
    backing_reclaim(gpu);
    return backing_take_once(gpu, bytes);
}

void backing_give(unsigned gpu, uint64_t bytes)
{
    state_shrink(gpu, bytes);
}

void backing_hide(unsigned gpu, int64_t change)
{
    state_hide(gpu, change);
}

uint64_t backing_free_bytes(unsigned gpu)
{
    vmm_collect();
    uint64_t used = state_used_bytes(gpu), total = process.config.memory_bytes;

    return used < total ? total - used : 0;
}
