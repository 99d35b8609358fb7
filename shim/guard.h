/* SPDX-License-Identifier: MIT
 *
 * Tells the program's calls from calls made while one of our hooks is already running on the same
 * thread (by the driver, by a callback of it, or by ourselves). Only the outermost call is counted.
 *
 * Thread-local, so no other thread is affected; usable in any thread and after fork.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include "api.h"

#include <stdbool.h>
#include <stddef.h>

/* initial-exec: the block is laid out when the program starts, so an access never allocates. The
 * general model would call __tls_get_addr, which may call malloc, inside somebody's allocator. */
extern _Thread_local unsigned guard_depth __attribute__((tls_model("initial-exec")));

/* The return address of the hook that the thread is in: who called it. */
extern _Thread_local const void *guard_caller __attribute__((tls_model("initial-exec")));

/* The runtime's function that the thread is in, if one of our labels stands before it: what the
 * program calls it by, and who called. */
struct guard_label {
    const void *caller; /* NULL: in none */
    enum api api;
};
extern _Thread_local struct guard_label guard_label __attribute__((tls_model("initial-exec")));

/* What a hook is to be called towards people: as the program called, where that is known. */
static inline enum api guard_name(enum api api)
{
    return guard_label.caller ? guard_label.api : api;
}

/* Where the program called from, in so far as it is known: not from within a runtime. */
static inline const void *guard_asker(void)
{
    return guard_label.caller ? guard_label.caller : guard_caller;
}

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
