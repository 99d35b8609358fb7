/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that knows where the program is: the call site of the call that a hook is
 * in. See limit.h for threads and forks; no lock is held meanwhile but for a look-up.
 */
#ifndef SHIM_LIMIT_SITES_H
#define SHIM_LIMIT_SITES_H

#include <stdint.h>

/* The number of the call site of an allocation of so many bytes, by GPU_LIMIT_STACKS; 0 if it is
 * not recorded. */
uint32_t limit_site(uint64_t bytes);

/* The name of a call site, as site_name.h has it; NULL unknown. It stays until a fork. */
const char *limit_site_name(uint32_t number);

#endif
