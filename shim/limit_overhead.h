/* SPDX-License-Identifier: MIT
 *
 * What the driver holds for the process outside any allocation: contexts, code, stacks, streams. It
 * is told by nobody, so it is measured: the driver's own figure for the process, less what its
 * allocations are known to hold. Where there is no such figure, it is what the card has less after
 * a call than before. See limit.h for threads and forks.
 *
 * Allocations go on while the driver is asked, so what they hold meanwhile is known only within
 * bounds: it was never more than the budget had taken for them, never less than the books had. So a
 * look gives bounds too, and moves the overhead no further than into them; when nothing goes on,
 * they are one figure, and the overhead is exact.
 *
 * With GPU_LIMIT_COUNT=allocations overhead does not count, and nobody looks.
 */
#ifndef SHIM_LIMIT_OVERHEAD_H
#define SHIM_LIMIT_OVERHEAD_H

#include "limit.h"

/* What was known of a device before the driver was asked about it. */
struct limit_look {
    unsigned device;
    uint64_t number;
    uint64_t most_bytes, least_bytes; /* what allocations held, as the driver's figure has it */
    struct ledger_flow flow;
    uint64_t guesses; /* budget_guesses */
    uint64_t overhead_bytes;
    bool is_vague; /* so was the look before */
    bool is_seen;  /* limit_look_seen: the caller's own request is left out */
};

bool limit_counts_overhead(void);

/* What overhead a device has, by the latest look. */
uint64_t limit_overhead(unsigned device);

/* Whether a device holds more than its limit: overhead came that nobody could refuse. */
bool limit_is_over(unsigned device);

/* Before the driver is asked. */
void limit_look_begin(struct limit_look *look, unsigned device);

/* After it: its figure for the process on the device. mine: a request for overhead of the caller's
 * own that is under way, or NULL. is_late: not after a call that moves it; what is new may be a
 * heap or buffer that was set before (limit_promises.h), taken by a kernel, and what is less may be
 * memory that another thread has given back and not yet told of. A look that began earlier than one
 * that has ended already changes nothing: returns false. */
bool limit_look_end(const struct limit_look *look, const struct ticket *mine, uint64_t figure_bytes,
                    bool is_late);

/* Where the driver has no such figure, the card has: what is used of it is asked for between
 * limit_look_begin and this. mine: the caller's own request, under way. */
void limit_look_seen(struct limit_look *look, const struct ticket *mine);

/* By how much more of the card was used at the second of two looks that have seen it. Where
 * allocations went on, that leaves bounds, in which what was to be expected decides; 0: nothing
 * was. Returns by how much the overhead is thought to have changed. */
int64_t limit_look_moved(const struct limit_look *before, const struct limit_look *after,
                         int64_t card_bytes, int64_t expected_bytes);

/* Not even that can be asked for: by how much it is thought to have changed. */
void limit_look_guessed(unsigned device, int64_t bytes);

/* There is no context on a device, so no overhead. */
void limit_look_empty(unsigned device);

/* Reserves room for what a call will take at least, as far as that is known. Returns false if the
 * limit refuses it, as limit_reserve; also when the device is over its limit already. */
bool limit_reserve_overhead(struct ticket *ticket, enum limit_what what, unsigned device,
                            enum api api, uint64_t bytes);

/* The call has been made: what was reserved for it is overhead now, until a look knows better. One
 * alone may not find it, as allocations that are under way can account for as much. */
void limit_take_overhead(struct ticket *ticket);

/* The call has been made, and looked at. The ticket is used up, unless the device is over its limit
 * by it: returns false then, and the caller undoes it, looks again, calls limit_give_up and answers
 * as if limit_reserve_overhead had refused. */
bool limit_settle_overhead(const struct limit_look *look, struct ticket *ticket);

/* What a context takes on a device, from the smallest that was seen there; 0 unknown. */
uint64_t limit_context_bytes(unsigned device);

#endif
