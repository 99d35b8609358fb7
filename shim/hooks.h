/* SPDX-License-Identifier: MIT
 *
 * Which of our functions stands in for which of the driver's: found by name (for dlsym) or by the
 * driver's own address (for cuGetProcAddress, which knows versions and flags so that we need not).
 *
 * Any thread. Both look-ups answer only what the driver at hand has.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include "api.h"
#include "real.h"

/* Returns the number of the hook or of the runtime's function with a name, or APIS. The functions
 * below are for hooks alone: what is below API_HOOKS. */
enum api hooks_find_name(const char *name);

/* Returns our function of a hook, and the driver's or NVML's; the latter is an absent one
 * (real_is_absent) where that library lacks it. */
real_function hooks_ours(enum api api);
real_function hooks_drivers(enum api api);

/* Resolves the library that a hook is of, if it is loaded. */
void hooks_ready(enum api api);

/* Returns our function for an address of the driver's or NVML's, or the address itself. */
real_function hooks_replace(real_function address);

#endif
