/* SPDX-License-Identifier: MIT
 *
 * A shared object with three functions that call each other, and at last the test that opened it:
 * the known stack of test_native_frames.c.
 */
#include "native_chain.h"

#ifndef CHAIN_PAD
#define CHAIN_PAD 16 /* bytes on the stack: two objects that differ in nothing but the frame */
#endif

int chain_data = 1; /* lies in a segment without code */

static void (*chain_unload)(void *);
static void *chain_unload_argument;

/* What follows each call keeps it from becoming a jump. */
#define CHAIN_STAY()     __asm__ volatile("" ::: "memory")
#define CHAIN_KEEP(_pad) __asm__ volatile("" ::"r"(_pad) : "memory")

__attribute__((noinline)) void chain_inner(void (*reached)(void *), void *argument)
{
    char pad[CHAIN_PAD];
    CHAIN_KEEP(pad);
    reached(argument);
    CHAIN_KEEP(pad);
}

__attribute__((noinline)) void chain_middle(void (*reached)(void *), void *argument)
{
    chain_inner(reached, argument);
    CHAIN_STAY();
}

__attribute__((noinline)) void chain_outer(void (*reached)(void *), void *argument)
{
    chain_middle(reached, argument);
    CHAIN_STAY();
}

__attribute__((noinline)) void chain_deep(void (*reached)(void *), void *argument, unsigned depth)
{
    if (depth == 0)
        chain_outer(reached, argument);
    else
        chain_deep(reached, argument, depth - 1);
    CHAIN_STAY();
}

#pragma GCC diagnostic ignored "-Walloca"

/* A frame that is more aligned than the stack, and of no fixed size: gcc finds its end by a
 * register of its own, and says in an expression where that is. */
__attribute__((noinline)) void chain_aligned(void (*reached)(void *), void *argument, size_t size)
{
    _Alignas(64) char pad[64];
    char *more = __builtin_alloca(size);
    CHAIN_KEEP(pad);
    CHAIN_KEEP(more);
    reached(argument);
    CHAIN_KEEP(pad);
    CHAIN_KEEP(more);
}

void chain_at_unload(void (*reached)(void *), void *argument)
{
    chain_unload = reached;
    chain_unload_argument = argument;
}

__attribute__((destructor)) static void chain_end(void)
{
    if (chain_unload)
        chain_outer(chain_unload, chain_unload_argument);
}
