/* SPDX-License-Identifier: MIT
 *
 * mremap moves pages instead of copying them.
 */
#include "grow.h"

#include <sys/mman.h>

enum { GROW_FIRST = 256 };

bool grow_array(void **array, uint32_t *capacity, size_t element_bytes)
{
    if (*capacity > UINT32_MAX / 2)
        return false;
    uint32_t larger = *capacity ? *capacity * 2 : GROW_FIRST;
    void *memory =
        *array ? mremap(*array, *capacity * element_bytes, larger * element_bytes, MREMAP_MAYMOVE)
               : mmap(NULL, larger * element_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    *array = memory;
    *capacity = larger;
    return true;
}

void grow_release(void **array, uint32_t *capacity, size_t element_bytes)
{
    if (*array)
        munmap(*array, *capacity * element_bytes);
    *array = NULL;
    *capacity = 0;
}
