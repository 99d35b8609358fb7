/* SPDX-License-Identifier: MIT
 *
 * When the library speaks to people, and when it stays quiet. What it says of a refusal is worded
 * in refusal*.c.
 *
 * Any thread. errno is left as it was.
 */
#ifndef SHIM_TELL_H
#define SHIM_TELL_H

#include "config.h"
#include "limit.h"

/* The start banner, at verbosity 2: no_ledger is the reason for having none, or NULL. */
void tell_banner(const struct config *config, const char *no_ledger);

/* What a card has in all. Once a device, before anything is refused on it. */
void tell_card(unsigned device, uint64_t total_bytes);

/* A refusal, whose ticket has the site that asked: explained if it is the first on its device in
 * this process, later ones together in a line, at most once in 10 s. Of the first, the largest and
 * the latest of the process a report is written, however quiet it is to be; so for those of the
 * driver. */
void tell_refusal(const struct ticket *ticket);

/* The driver has refused, with out of memory, a request that the limit had let pass and that is
 * cancelled: said once a device. */
void tell_driver_refusal(const struct ticket *ticket);

/* An allocation that succeeded, from verbosity 3 on. */
void tell_allocation(const struct ticket *ticket, uint64_t bytes);

/* What a call has taken as overhead, if anything, from verbosity 3 on. */
void tell_overhead(const struct ticket *ticket, uint64_t bytes);

/* A function of the driver's that this library does not know (unknown.h), at verbosity 2. */
void tell_unknown(const char *name);

/* The process ends: a line for each device on which the limit has refused something. */
void tell_end(void);

/* The process has ended, and its ledger says so: the report of the run, if GPU_LIMIT_REPORT wants
 * one. */
void tell_report(void);

/* Locks the books at the end of the process, which may have come in the middle of a change of them:
 * NULL, rather than hang, where they are not to be had. For the parts of this module. */
struct books *tell_lock_books(void);

/* In a fork's child: nothing has been said yet. */
void tell_reset(void);

#endif
