/* SPDX-License-Identifier: MIT
 *
 * What native_chain.c exports. Each function calls the next, the innermost calls reached(argument).
 */
#ifndef TESTS_UNIT_NATIVE_CHAIN_H
#define TESTS_UNIT_NATIVE_CHAIN_H

#include <stddef.h>

void chain_inner(void (*reached)(void *), void *argument);
void chain_middle(void (*reached)(void *), void *argument);
void chain_outer(void (*reached)(void *), void *argument);

/* Calls itself that many times before chain_outer. */
void chain_deep(void (*reached)(void *), void *argument, unsigned depth);

/* Has a frame of an unusual form, with so many bytes more. */
void chain_aligned(void (*reached)(void *), void *argument, size_t size);

/* Has chain_outer called as the object is unloaded. */
void chain_at_unload(void (*reached)(void *), void *argument);

extern int chain_data;

#endif
