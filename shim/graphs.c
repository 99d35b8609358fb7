/* SPDX-License-Identifier: MIT
 *
 * The bookkeeping of graphs.h.
 */
#include "graphs.h"

#include "grow.h"

static struct graphs_exec *graphs_find(struct graphs *graphs, uint64_t handle)
{
    const uint64_t *number = table_find(&graphs->by_handle, handle);
    return number ? &graphs->execs[*number] : NULL;
}

bool graphs_insert(struct graphs *graphs, uint64_t handle, const struct graphs_need *need)
{
    struct graphs_exec *known = graphs_find(graphs, handle);
    uint32_t number = graphs->free_list - 1;
    if (known) {
        *known = (struct graphs_exec){.need = *need};
        return true;
    }
    if (graphs->free_list == 0) {
        if (graphs->used == graphs->capacity &&
            !grow_array((void **)&graphs->execs, &graphs->capacity, sizeof(struct graphs_exec)))
            return false;
        number = graphs->used;
    }
    if (!table_set(&graphs->by_handle, handle, number))
        return false;
    if (graphs->free_list)
        graphs->free_list = graphs->execs[number].next_free;
    else
        graphs->used++;
    graphs->execs[number] = (struct graphs_exec){.need = *need};
    return true;
}

const struct graphs_need *graphs_find_needy(struct graphs *graphs, uint64_t handle)
{
    const struct graphs_exec *exec = graphs_find(graphs, handle);
    if (!exec || (exec->turn > 0 && exec->turn == graphs->turns[exec->need.device]))
        return NULL;
    return &exec->need;
}

void graphs_back(struct graphs *graphs, uint64_t handle)
{
    struct graphs_exec *exec = graphs_find(graphs, handle);
    if (exec)
        exec->turn = ++graphs->turns[exec->need.device];
}

void graphs_remove(struct graphs *graphs, uint64_t handle)
{
    const uint64_t *found = table_find(&graphs->by_handle, handle);
    if (!found)
        return;
    uint32_t number = (uint32_t)*found;
    table_remove(&graphs->by_handle, handle);
    graphs->execs[number].next_free = graphs->free_list;
    graphs->free_list = number + 1;
}

void graphs_trim(struct graphs *graphs, unsigned device)
{
    graphs->turns[device]++;
}

void graphs_clear(struct graphs *graphs)
{
    table_clear(&graphs->by_handle);
    grow_release((void **)&graphs->execs, &graphs->capacity, sizeof(struct graphs_exec));
    *graphs = (struct graphs){0};
}
