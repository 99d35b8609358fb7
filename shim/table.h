/* SPDX-License-Identifier: MIT
 *
 * A hash table from 64-bit keys to 64-bit values, on memory of its own (mmap): hooks run inside
 * other people's allocators, where malloc is not ours to call.
 *
 * Keys are never 0. No locking: the caller has a lock. A zero-initialised struct table is empty and
 * valid.
 */
#ifndef SHIM_TABLE_H
#define SHIM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_cell {
    uint64_t key; /* 0: free */
    uint64_t value;
};

struct table {
    struct table_cell *cells;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Sets the value of a key, new or old. Returns false, with the table as it was, when there is no
 * memory. */
bool table_set(struct table *table, uint64_t key, uint64_t value);

/* Returns the place of the key's value, valid until the next table_set or table_remove; NULL if
 * absent. */
uint64_t *table_find(const struct table *table, uint64_t key);

/* Removes a key. Returns false if it was absent. */
bool table_remove(struct table *table, uint64_t key);

/* Calls visit for each pair, in no order, until it returns false. visit must not change the table.
 */
void table_each(const struct table *table,
                bool (*visit)(uint64_t key, uint64_t value, void *argument), void *argument);

/* Gives the memory back and leaves an empty table. */
void table_clear(struct table *table);

#endif
