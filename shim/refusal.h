/* SPDX-License-Identifier: MIT
 *
 * The message of a refusal: what happened, the numbers, what to do. For a person at 2 a.m.
 */
#ifndef SHIM_REFUSAL_H
#define SHIM_REFUSAL_H

#include "limit.h"
#include "log.h"

struct refusal {
    const char *api;
    unsigned device;
    enum limit_what what;
    uint64_t requested_bytes; /* 0: not known, of something that takes no more than it must */
    uint64_t used_bytes;
    uint64_t overhead_bytes; /* of that */
    uint64_t limit_bytes;
    const char *limit_text; /* GPU_LIMIT_MB as it was set */
    bool knows_card_free;
    uint64_t card_free_bytes;
    const char *command; /* as /proc/self/comm has it */
    int pid;
    bool has_ledger; /* gpulimit-stat can see this process */
};

/* Writes the message into text: at most six lines. */
void refusal_explain(struct text *text, const struct refusal *refusal);

#endif
