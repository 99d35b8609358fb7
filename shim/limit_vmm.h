/* SPDX-License-Identifier: MIT
 *
 * Handles and mappings of cuMemCreate's memory: the part of the gate that decides when it is freed.
 * See limit.h for threads and forks. Handles and addresses not heard of are no error: they change
 * nothing.
 */
#ifndef SHIM_LIMIT_VMM_H
#define SHIM_LIMIT_VMM_H

#include "limit.h"

/* The driver is about to release a handle. *object is for the two calls below. */
void limit_handle_detach(uint64_t handle, uint32_t *object);

/* The driver has released it. The memory is freed if this was the last handle and there is no
 * mapping. */
void limit_handle_release(uint32_t object);

/* The driver has not. */
void limit_handle_restore(uint64_t handle, uint32_t object);

/* The driver has handed out a handle to the memory mapped at an address. */
void limit_handle_retained(uint64_t handle, uint64_t address);

/* The driver has handed out a handle to memory that somebody else pays for. */
void limit_handle_imported(uint64_t handle, unsigned device, enum api api);

/* The driver has mapped memory, or unmapped all mappings in a range. */
void limit_mapped(uint64_t handle, uint64_t address, uint64_t bytes);
void limit_unmapped(uint64_t address, uint64_t bytes);

#endif
