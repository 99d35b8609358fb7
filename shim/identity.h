/* SPDX-License-Identifier: MIT
 *
 * Who this process is, in the words of a ledger's header, so that a reader needs neither /proc of
 * another namespace nor the process itself.
 */
#ifndef SHIM_IDENTITY_H
#define SHIM_IDENTITY_H

#include "gpulimit/region.h"

#include <stdbool.h>

/* Fills in pid to cgroup, and library_version. What cannot be found out stays 0 or empty. */
void identity_fill(struct gpulimit_header *header);

/* Whether the process that a header names runs: the same boot, pid namespace and start time. Where
 * that cannot be found out, it does not. */
bool identity_runs(const struct gpulimit_header *header);

#endif
