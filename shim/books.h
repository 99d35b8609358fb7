/* SPDX-License-Identifier: MIT
 *
 * All that is known of the process's memory, and the one lock around it. limit*.c keeps the books;
 * nobody else sees them.
 *
 * The lock is held for some dozen instructions, never across a call of the driver, and is last in
 * any order: nothing else is locked while it is held. A fork takes it, so that the child finds the
 * books whole; the child then starts with empty ones, as CUDA itself does not survive a fork.
 */
#ifndef SHIM_BOOKS_H
#define SHIM_BOOKS_H

#include "blocks.h"
#include "graphs.h"
#include "ledger.h"
#include "mappings.h"
#include "pools.h"
#include "shares.h"
#include "sites.h"
#include "tiles.h"

/* Linear memory freed in stream order, which the device still holds. */
struct later {
    struct ledger_entry *entries;
    uint32_t count, capacity;
};

/* Memory of cuMemCreate that has neither handle nor mapping, but may live on by what was exported
 * of it. */
struct export
{
    uint32_t entry; /* in the ledger */
    int descriptor; /* -1: none */
    uint64_t inode, filesystem;
};

struct exports {
    struct export *kept;
    uint32_t count, capacity;
};

/* What the driver holds outside any allocation. */
struct overhead {
    uint64_t measured_bytes;
    uint64_t promised_bytes; /* what settings let kernels take later, and no look has found taken */
    uint64_t hidden_bytes;   /* of allocations but managed ones, what no figure shows */
    uint64_t context_bytes;  /* what a context takes, from the smallest seen; 0 unknown */
    bool is_vague;           /* the latest look found bounds, not one figure */
    uint64_t looked;         /* number of the latest look that has ended */
    uint64_t due_mono_ns;    /* when an allocation is to look */
    uint64_t low_mono_ns;    /* since when looks have left less than was measured; 0 they do not */
    uint64_t low_bytes;      /* the most that they have left since */
};

struct books {
    struct ledger ledger;
    struct blocks blocks;     /* linear memory */
    struct pools pools;       /* stream-ordered memory */
    struct mappings mappings; /* memory of cuMemCreate */
    struct tiles tiles;       /* of that, what lies in arrays */
    struct shares arrays[BUDGET_DEVICES];
    struct graphs graphs; /* executable graphs that need memory */
    struct pool graph_memory[BUDGET_DEVICES];
    struct later later;
    struct exports exports;
    uint32_t imports;      /* what is held of others' memory, or perhaps of our own */
    struct table opens;    /* address of imported memory -> how often it was opened */
    struct table promises; /* context and number of a setting -> bytes that it promises */
    struct table contexts; /* contexts that the program created itself -> users and device */
    struct overhead overhead[BUDGET_DEVICES];
    uint64_t looks; /* how many have begun */
    struct sites sites;
    uint32_t generation; /* counts forks: numbers of sites are of one process */
};

struct books *books_lock(void);
void books_unlock(void);

/* The books' generation, without the lock: only a fork, whose child has one thread, changes it. */
uint32_t books_generation(void);

/* As books_lock, but NULL where it would have to wait: for the end of the process, which may have
 * come in the middle of anything. */
struct books *books_try_lock(void);

/* Arranges for forks, once a process. in_child is called in the child with fresh books, unlocked.
 */
void books_watch_fork(void (*in_child)(void));

#endif
