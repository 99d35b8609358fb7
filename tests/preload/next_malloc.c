/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD that stands in for malloc and hands on to the next one, as heap
 * profilers do: it looks that one up with RTLD_NEXT, in its first call, long before any
 * constructor. Counts what is asked of it. Never instrumented.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

unsigned long next_malloc_calls(void);
void *next_malloc_address(void);
void *__libc_calloc(size_t count, size_t bytes); /* glibc's own name for it */

static _Atomic unsigned long calls;

void *next_malloc_address(void)
{
    static void *_Atomic next;
    if (!next)
        next = dlsym(RTLD_NEXT, "malloc");
    return next;
}

void *malloc(size_t bytes)
{
    void *(*next)(size_t) = NULL;
    *(void **)&next = next_malloc_address();
    calls++;
    return next(bytes);
}

/* Not by dlsym: that may call it. */
void *calloc(size_t count, size_t bytes)
{
    calls++;
    return __libc_calloc(count, bytes);
}

unsigned long next_malloc_calls(void)
{
    return calls;
}
