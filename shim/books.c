/* SPDX-License-Identifier: MIT
 *
 * The lock of books.h and what a fork does to it.
 */
#include "books.h"

#include "grow.h"

#include <pthread.h>

static pthread_mutex_t books_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct books books_kept;
static void (*books_in_child)(void);

struct books *books_lock(void)
{
    pthread_mutex_lock(&books_mutex);
    return &books_kept;
}

void books_unlock(void)
{
    pthread_mutex_unlock(&books_mutex);
}

uint32_t books_generation(void)
{
    return books_kept.generation;
}

struct books *books_try_lock(void)
{
    return pthread_mutex_trylock(&books_mutex) == 0 ? &books_kept : NULL;
}

static void books_before_fork(void)
{
    pthread_mutex_lock(&books_mutex);
}

static void books_after_fork_in_child(void)
{
    ledger_clear(&books_kept.ledger);
    table_clear(&books_kept.blocks.users);
    mappings_clear(&books_kept.mappings);
    tiles_clear(&books_kept.tiles);
    table_clear(&books_kept.opens);
    table_clear(&books_kept.promises);
    table_clear(&books_kept.contexts);
    pools_clear(&books_kept.pools);
    graphs_clear(&books_kept.graphs);
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        books_kept.arrays[device] = (struct shares){0};
        books_kept.overhead[device] = (struct overhead){0};
        pools_remove(&books_kept.graph_memory[device]);
    }
    grow_release((void **)&books_kept.later.entries, &books_kept.later.capacity,
                 sizeof(struct ledger_entry));
    books_kept.later.count = 0;
    grow_release((void **)&books_kept.exports.kept, &books_kept.exports.capacity,
                 sizeof(struct export));
    books_kept.exports.count = 0;
    books_kept.imports = 0;
    sites_clear(&books_kept.sites);
    books_kept.generation++;
    pthread_mutex_unlock(&books_mutex);
    books_in_child();
}

void books_watch_fork(void (*in_child)(void))
{
    bool is_watching = books_in_child != NULL;
    books_in_child = in_child;
    if (!is_watching)
        pthread_atfork(books_before_fork, books_unlock, books_after_fork_in_child);
}
