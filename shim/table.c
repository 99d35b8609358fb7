/* SPDX-License-Identifier: MIT
 *
 * Open addressing with linear probing. A removal shifts later cells of the run back instead of
 * leaving a tombstone, so a program that allocates and frees for months does not slow down.
 */
#include "table.h"

#include <sys/mman.h>

enum { TABLE_FIRST_CAPACITY = 1024 };

static size_t table_home(const struct table *table, uint64_t key)
{
    /* Device pointers are aligned, so differ in high bits alone. The top bits of a product depend
     * on all bits of the key: take as many of them as the capacity has. */
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> (__builtin_clzll(table->capacity) + 1));
}

static struct table_cell *table_map_cells(size_t capacity)
{
    void *memory = mmap(NULL, capacity * sizeof(struct table_cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Returns the cell that holds the key, or the free cell where it belongs. */
static struct table_cell *table_probe(const struct table *table, uint64_t key)
{
    size_t at = table_home(table, key);
    while (table->cells[at].key != 0 && table->cells[at].key != key)
        at = (at + 1) & (table->capacity - 1);
    return &table->cells[at];
}

static bool table_grow(struct table *table)
{
    struct table larger = {.capacity = table->capacity ? table->capacity * 2 : TABLE_FIRST_CAPACITY,
                           .count = table->count};
    larger.cells = table_map_cells(larger.capacity);
    if (!larger.cells)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->cells[i].key != 0)
            *table_probe(&larger, table->cells[i].key) = table->cells[i];
    }
    table_clear(table);
    *table = larger;
    return true;
}

bool table_set(struct table *table, uint64_t key, uint64_t value)
{
    /* Half full at most: runs stay short, and there is always a free cell to end a probe. */
    if (table->count * 2 >= table->capacity && !table_grow(table))
        return false;
    struct table_cell *cell = table_probe(table, key);
    if (cell->key == 0) {
        cell->key = key;
        table->count++;
    }
    cell->value = value;
    return true;
}

uint64_t *table_find(const struct table *table, uint64_t key)
{
    if (table->capacity == 0)
        return NULL;
    struct table_cell *cell = table_probe(table, key);
    return cell->key == 0 ? NULL : &cell->value;
}

bool table_remove(struct table *table, uint64_t key)
{
    if (table->capacity == 0)
        return false;
    size_t mask = table->capacity - 1;
    struct table_cell *cell = table_probe(table, key);
    if (cell->key == 0)
        return false;
    size_t hole = (size_t)(cell - table->cells);
    for (size_t at = (hole + 1) & mask; table->cells[at].key != 0; at = (at + 1) & mask) {
        size_t home = table_home(table, table->cells[at].key);
        /* Movable if its home is not inside (hole, at]: probing from home would meet the hole
         * first. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->cells[hole] = table->cells[at];
            hole = at;
        }
    }
    table->cells[hole].key = 0;
    table->count--;
    return true;
}

void table_each(const struct table *table,
                bool (*visit)(uint64_t key, uint64_t value, void *argument), void *argument)
{
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->cells[i].key != 0 &&
            !visit(table->cells[i].key, table->cells[i].value, argument))
            return;
    }
}

void table_clear(struct table *table)
{
    if (table->cells)
        munmap(table->cells, table->capacity * sizeof(struct table_cell));
    *table = (struct table){0};
}
