/* SPDX-License-Identifier: MIT
 *
 * How every hook begins and ends. The steps of an allocation, in this order in each entry_*.c:
 *
 *   1. entry_enter    a nested call passes straight to the driver
 *   2. driver_...     where the memory goes; what the driver will refuse anyway passes straight
 *   3. limit_reserve  refused: answer out of memory, the driver is not called
 *   4. real.<symbol>
 *   5. limit_commit   or entry_cancel, if the driver refused; committed too late for the limit, it
 *                     is freed again and limit_give_up says so
 *   6. guard_leave    then the driver's result, unchanged
 *
 * A call that takes memory outside any allocation has truth_begin for step 3 and truth_settle for
 * step 5, where its undoing ends with truth_give_up (truth.h).
 *
 * Freeing: entry_enter, limit_detach, real.<symbol>, limit_release or limit_restore, guard_leave.
 */
#ifndef SHIM_ENTRY_H
#define SHIM_ENTRY_H

#include "guard.h"
#include "limit.h"
#include "real.h"

/* Returns true for the program's own call, which must end with guard_leave or entry_pass. */
__attribute__((always_inline)) static inline bool entry_enter(void)
{
    (void)real_ready(); /* a program linked with the driver comes here without ever having looked us
                           up */
    if (!guard_enter())
        return false;
    guard_caller = __builtin_return_address(0); /* inlined: the hook's own */
    return true;
}

/* Leaves a hook that has nothing to count, with the driver's answer. */
static inline CUresult entry_pass(CUresult result)
{
    guard_leave();
    return result;
}

/* The driver has not allocated, and answers so. */
static inline void entry_cancel(struct ticket *ticket, CUresult result)
{
    limit_cancel(ticket);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        limit_driver_refused(ticket);
}

#endif
