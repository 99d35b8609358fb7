/* SPDX-License-Identifier: MIT
 *
 * Tells the program's calls from calls made while one of our hooks is already running on the same
 * thread (by the driver, by a callback of it, or by ourselves). Only the outermost call is counted.
 *
 * Thread-local, so no other thread is affected; usable in any thread and after fork.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include <stdbool.h>

/* initial-exec: the block is laid out when the program starts, so an access never allocates. The
 * general model would call __tls_get_addr, which may call malloc, inside somebody's allocator. */
extern _Thread_local unsigned guard_depth __attribute__((tls_model("initial-exec")));

/* The return address of the hook that the thread is in: who called it. */
extern _Thread_local const void *guard_caller __attribute__((tls_model("initial-exec")));

/* Enters a hook. Returns true for the outermost one, which must call guard_leave. Returns false for
 * a nested call, which passes straight to the driver and must not call guard_leave. */
static inline bool guard_enter(void)
{
    if (guard_depth > 0)
        return false;
    guard_depth = 1;
    return true;
}

static inline void guard_leave(void)
{
    guard_depth = 0;
}

#endif
