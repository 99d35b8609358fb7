/* SPDX-License-Identifier: MIT
 *
 * Arrays that double, on memory of their own (mmap): hooks run inside other people's allocators,
 * where malloc is not ours to call. No locking: the caller has a lock.
 */
#ifndef SHIM_GROW_H
#define SHIM_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for at least twice as many elements (256 at first), zeroed. The array may move.
 * Returns false, with the array as it was, when there is no memory. */
bool grow_array(void **array, uint32_t *capacity, size_t element_bytes);

/* Gives the array's memory back; NULL and 0 are welcome. */
void grow_release(void **array, uint32_t *capacity, size_t element_bytes);

#endif
