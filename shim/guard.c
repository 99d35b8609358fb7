/* SPDX-License-Identifier: MIT
 *
 * The one thread-local variable behind guard.h.
 */
#include "guard.h"

_Thread_local unsigned guard_depth;
