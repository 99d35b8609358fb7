/* SPDX-License-Identifier: MIT
 *
 * Memory of other processes and other interfaces, reached by an address or a handle of its own:
 * listed, so that a reader sees that it is there, and charged to nobody here, since its owner pays.
 * See limit.h for threads and forks. Memory of cuMemCreate that was imported is in limit_vmm.h.
 */
#ifndef SHIM_LIMIT_IMPORTS_H
#define SHIM_LIMIT_IMPORTS_H

#include "limit.h"

/* Something was opened at an address. Opened again it is one thing, to be closed as often. owner:
 * the context that it dies with, 0 if it survives them all. What is given back by cuMemFree instead
 * goes by limit_detach and its kin. */
void limit_imported(uint64_t address, unsigned device, uint64_t owner, enum api api);

/* It was closed once. */
void limit_closed(uint64_t address);

#endif
