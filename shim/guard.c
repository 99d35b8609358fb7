/* SPDX-License-Identifier: MIT
 *
 * The thread-local variables behind guard.h.
 */
#include "guard.h"

/* Here too: in the unit that defines them, gcc would not look at the declaration. */
_Thread_local unsigned guard_depth __attribute__((tls_model("initial-exec")));
_Thread_local const void *guard_caller __attribute__((tls_model("initial-exec")));
_Thread_local struct guard_label guard_label __attribute__((tls_model("initial-exec")));
