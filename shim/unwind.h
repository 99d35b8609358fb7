/* SPDX-License-Identifier: MIT
 *
 * Walks the stack of the calling thread fast: by the rules of unwind_rules.h, each of which is read
 * once and kept. Where a rule is not understood, or code belongs to no object, it gives up, and the
 * C library's backtrace has to do it: on another architecture or an older C library, always.
 *
 * Any thread, any stack, after fork, also in signal handlers. No lock, no memory allocated.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* Hands the return addresses, innermost first, those of this object among them, to a function that
 * says whether it wants more. Returns false if it had to give up: what it has handed over by then
 * is not all. */
bool unwind(bool (*wants_more)(void *argument, uint64_t return_address), void *argument);

#endif
