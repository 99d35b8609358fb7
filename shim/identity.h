/* SPDX-License-Identifier: MIT
 *
 * Who this process is, in the words of a ledger's header, so that a reader needs neither /proc of
 * another namespace nor the process itself.
 */
#ifndef SHIM_IDENTITY_H
#define SHIM_IDENTITY_H

#include "gpulimit/region.h"

/* Fills in pid to cgroup, and library_version. What cannot be found out stays 0 or empty. */
void identity_fill(struct gpulimit_header *header);

#endif
