/* SPDX-License-Identifier: MIT
 *
 * What the driver holds for this process outside any allocation, found out: by NVML's own figure
 * for the process or, where NVML does not list it (a pid namespace, no NVML at all), by what the
 * card has less after a call than before. What is then charged: limit_overhead.h.
 *
 * NVML is loaded when the process makes its first context, and not before: few processes that are
 * preloaded do. A question takes some 20 us (measured, driver 580.159), so it is asked where
 * overhead is known to move, before a refusal, and else from time to time; never with a lock held.
 * In between, code that kernels bring along is not seen.
 *
 * Any thread, inside a hook. errno is left as it was. After a fork the child begins anew.
 */
#ifndef SHIM_TRUTH_H
#define SHIM_TRUTH_H

#include "limit_overhead.h"

/* A call that is known to take overhead, or to give it back. */
struct truth_call {
    struct ticket ticket;
    struct limit_look look, after; /* the second one where only the card is seen */
    int64_t
        expected_bytes;  /* the caller's: what it is known to take, or less than 0 to give back */
    int64_t moved_bytes; /* what it has taken, by the card; 0 unknown */
    bool is_loose;       /* it need not be looked at now */
    bool has_card;
    uint64_t card_bytes;  /* what of the card was in use before */
    uint64_t guess_bytes; /* what it takes, if nothing could be asked before; the caller's, after
                             truth_begin */
    int turn;             /* the device's turn, see truth.c; -1 none */
};

/* Looks at a device. */
void truth_look(unsigned device);

/* Looks at the device of the current context, if that has not been done just now: after a call by
 * which a kernel may have brought its code along. */
void truth_look_late(void);

/* A context of a device may have ended, by a call that nobody watched. */
void truth_look_gone(unsigned device);

/* There is a context on a device: looks, unless it has been looked at since the context came. */
void truth_meet(unsigned device);

/* The steps around a call that takes overhead, as those of an allocation: bytes is what it takes at
 * least, 0 if unknown. truth_begin returns false if that is refused: answer out of memory. After
 * the call truth_settle, or truth_cancel with the driver's answer if that is an error. truth_settle
 * returns false if what it took did not fit: undo it, then truth_give_up, then answer out of
 * memory. */
bool truth_begin(struct truth_call *call, enum limit_what what, unsigned device, enum api api,
                 uint64_t bytes);
bool truth_settle(struct truth_call *call);
void truth_cancel(struct truth_call *call, unsigned result);
void truth_give_up(struct truth_call *call);

/* Around a call that gives overhead back, or takes some and cannot be undone. */
void truth_watch(struct truth_call *call, enum limit_what what, unsigned device);
void truth_watched(struct truth_call *call);

/* Around a call that loads code into the current context if that is not there yet. handle: of a
 * library, module or kernel, which is looked at the first time, and later when it is time. result:
 * the driver's answer, which is a refusal if it has no memory. */
void truth_watch_late(struct truth_call *call);
void truth_watched_late(struct truth_call *call, const void *handle, unsigned result, enum api api);

/* Code was unloaded: handles may be handed out again. */
void truth_forget_handles(void);

/* In a fork's child. */
void truth_forget(void);

/* What a call has taken that is settled, where only the card can say; else 0. */
static inline uint64_t truth_took(const struct truth_call *call)
{
    return call->moved_bytes > 0 ? (uint64_t)call->moved_bytes : 0;
}

#endif
