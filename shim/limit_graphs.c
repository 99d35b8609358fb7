/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that a graph's launch passes, see limit_graphs.h.
 */
#include "limit_graphs.h"

#include "limit_books.h"

#include <stdatomic.h>

static atomic_bool limit_has_graphs; /* one that needs memory has been seen */

void limit_graph_instantiated(uint64_t exec, const struct graphs_need *need)
{
    struct books *books = books_lock();
    graphs_insert(&books->graphs, exec, need);
    books_unlock();
    atomic_store_explicit(&limit_has_graphs, true, memory_order_relaxed);
}

bool limit_graph_needs(uint64_t exec, struct graphs_need *need)
{
    /* Relaxed: whoever launches a graph has its handle from whoever instantiated it, by some order
     * of their own. */
    if (!atomic_load_explicit(&limit_has_graphs, memory_order_relaxed))
        return false;
    struct books *books = books_lock();
    const struct graphs_need *found = graphs_find_needy(&books->graphs, exec);
    if (found)
        *need = *found;
    books_unlock();
    return found != NULL;
}

void limit_graph_commit(struct ticket *ticket, uint64_t exec)
{
    struct books *books = books_lock();
    int64_t cost = pools_end(limit_pool_of(books, ticket), ticket->pool_bytes, &ticket->reading);
    int64_t charge = limit_counts_requests() ? 0 : cost;
    if (!limit_settle(books, ticket,
                      charge)) /* launched it is: the device holds it, limit or not */
        budget_adjust(ticket->device, charge - (int64_t)ticket->held_bytes);
    ledger_commit(&books->ledger, ticket->device, GPULIMIT_KIND_GRAPH, cost);
    ledger_publish(&books->ledger, ticket->device, GPULIMIT_KIND_GRAPH);
    graphs_back(&books->graphs, exec);
    books_unlock();
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
}

void limit_graph_destroyed(uint64_t exec)
{
    if (!atomic_load_explicit(&limit_has_graphs, memory_order_relaxed))
        return;
    struct books *books = books_lock();
    graphs_remove(&books->graphs, exec);
    books_unlock();
}

bool limit_graph_holds(unsigned device)
{
    if (!atomic_load_explicit(&limit_has_graphs, memory_order_relaxed))
        return false;
    struct books *books = books_lock();
    bool holds = books->graph_memory[device].reserved_bytes > 0;
    books_unlock();
    return holds;
}

void limit_graph_update(unsigned device, const struct pool_reading *reading, bool has_trimmed)
{
    struct books *books = books_lock();
    int64_t change = pools_update(&books->graph_memory[device], reading);
    limit_note_change(books, device, GPULIMIT_KIND_GRAPH, change);
    if (has_trimmed || change < 0)
        graphs_trim(&books->graphs, device);
    books_unlock();
}
