/* SPDX-License-Identifier: MIT
 *
 * Stands in for symbols.c in a build without libdw: nothing has a name.
 */
#include <stddef.h>

#include "symbols.h"

struct symbols *symbols_open(void)
{
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
    (void)symbols;
}

void symbols_add_process(struct symbols *symbols, int32_t pid)
{
    (void)symbols;
    (void)pid;
}

struct symbol symbols_find(struct symbols *symbols, const struct gpulimit_module *module,
                           uint64_t return_address)
{
    (void)symbols;
    (void)module;
    (void)return_address;
    return (struct symbol){0};
}

bool symbols_are_built_in(void)
{
    return false;
}
