/* SPDX-License-Identifier: MIT
 *
 * A shared object with three functions that call each other, and at last the test that opened it:
 * the known stack of test_native_frames.c.
 */
#include "native_chain.h"

int chain_data = 1; /* lies in a segment without code */

static void (*chain_unload)(void *);
static void *chain_unload_argument;

/* What follows each call keeps it from becoming a jump. */
#define CHAIN_STAY() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) void chain_inner(void (*reached)(void *), void *argument)
{
    reached(argument);
    CHAIN_STAY();
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
