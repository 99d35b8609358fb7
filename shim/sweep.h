/* SPDX-License-Identifier: MIT
 *
 * Removes ledgers of processes that are no more, so that they do not fill the folder. The newest
 * stay, for post-mortems.
 */
#ifndef SHIM_SWEEP_H
#define SHIM_SWEEP_H

enum {
    SWEEP_KEEP = 32,               /* dead ledgers of this user that stay */
    SWEEP_AGE_SECONDS = 24 * 3600, /* older ones go in any case */
};

/* Looks through a folder, once. Files of other users, of live processes and of unknown kind are
 * left alone. Not to be called with a ledger of one's own open in it: closing another descriptor of
 * it would drop its lock. */
void sweep_dead_ledgers(const char *dir);

#endif
