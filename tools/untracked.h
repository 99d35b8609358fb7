/* SPDX-License-Identifier: MIT
 *
 * What the driver holds for a process and its ledger does not explain: NVML's own figure less what
 * is charged. Asked of NVML at the moment of looking and never taken from the ledger, so that it
 * can show the ledger wrong.
 */
#ifndef GPULIMIT_TOOLS_UNTRACKED_H
#define GPULIMIT_TOOLS_UNTRACKED_H

#include "view.h"

/* True, and *bytes is set, below 0 if more is charged than the driver holds. The figure counts only
 * if the ledger said the same before and after it; a process that allocates too fast for that is as
 * unknown as one that NVML does not list. */
bool untracked_measure(const struct gpulimit_ledger *ledger,
                       const struct gpulimit_ledger_device *device, int64_t *bytes);

/* The same for every row. */
void untracked_fill(struct view *view);

#endif
