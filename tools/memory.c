/* SPDX-License-Identifier: MIT
 *
 * Memory for the tools, where running out of it ends the program.
 */
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *memory_check(void *memory)
{
    if (!memory) {
        fputs("gpulimit: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

void *memory_grow(void *array, size_t count, size_t size)
{
    /* Full at every power of two, and so it doubles. */
    if (count == 0 || (count & (count - 1)) == 0) {
        return memory_check(reallocarray(array, count == 0 ? 1 : 2 * count, size));
    }
    return array;
}

char *memory_print(const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return memory_check(length < 0 ? NULL : text);
}
