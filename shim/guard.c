/* SPDX-License-Identifier: MIT
 *
 * The thread-local variables behind guard.h.
 */
#include "guard.h"

_Thread_local unsigned guard_depth;
_Thread_local const void *guard_caller;
