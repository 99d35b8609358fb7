/* SPDX-License-Identifier: MIT
 *
 * Says whether the process that writes a ledger still runs.
 */
#ifndef GPULIMIT_TOOLS_LIVENESS_H
#define GPULIMIT_TOOLS_LIVENESS_H

#include "gpulimit/reader.h"

/* Sets ledger->state and ledger->lock_pid from the ledger's identity, the lock on the open file
 * `fd` and /proc. Where /proc says nothing the answer is GPULIMIT_STATE_STALE. Any thread. */
void liveness_find(int fd, struct gpulimit_ledger *ledger);

#endif
