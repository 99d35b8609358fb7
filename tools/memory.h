/* SPDX-License-Identifier: MIT
 *
 * Memory for the tools, where running out of it ends the program. The reader does not use this: it
 * may be part of other programs and reports instead.
 */
#ifndef GPULIMIT_TOOLS_MEMORY_H
#define GPULIMIT_TOOLS_MEMORY_H

#include <stddef.h>

/* Room for one element more in an array of `count` elements of `size` bytes, which may be NULL and
 * may move. The caller frees it with free(). Ends the program with status 1 when memory runs out.
 */
void *memory_grow(void *array, size_t count, size_t size);

/* A formatted string, for the caller to free(). */
__attribute__((format(printf, 1, 2))) char *memory_print(const char *format, ...);

/* `memory`, if it is not NULL: for the results of calloc, strdup and the like. */
void *memory_check(void *memory);

#endif
