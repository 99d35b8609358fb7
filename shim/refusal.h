/* SPDX-License-Identifier: MIT
 *
 * The messages about refusals: what happened, the numbers, what to do. For a person at 2 a.m. Words
 * only: when something is said, and where to, is tell.h's.
 */
#ifndef SHIM_REFUSAL_H
#define SHIM_REFUSAL_H

#include "limit.h"
#include "limit_holders.h"
#include "log.h"
#include "neighbours.h"
#include "pace.h"

struct refusal {
    const char *api;
    unsigned device;
    enum limit_what what;
    uint64_t requested_bytes; /* 0: not known, of something that takes no more than it must */
    uint64_t need_bytes;      /* what the driver would take for it */
    uint64_t limit_bytes;
    const char *limit_text;       /* GPU_LIMIT_MB as it was set */
    struct limit_holders holders; /* of what is in use */
    bool knows_card_free;
    uint64_t card_free_bytes;
    uint64_t card_total_bytes;
    const struct neighbours *neighbours; /* who else is on the card; NULL: nobody has looked */
    uint32_t site;                       /* of who asked; 0 unknown */
    const char *asked_by;                /* its name, "train.py:88 forward"; NULL unknown */
    const char *tag;                     /* what the asker was at, "epoch 3"; NULL unknown */
    const char *command;                 /* as /proc/self/comm has it */
    int pid;
    bool has_ledger;         /* gpulimit-stat can see this process */
    const char *report_path; /* where the report is; NULL if there is none */
};

/* Writes the message of the first refusal into text: at most six lines. */
void refusal_explain(struct text *text, const struct refusal *refusal);

/* Whether the same limit would let it pass with GPU_LIMIT_COUNT=allocations: whether that is
 * advice, where overhead is the cause. */
bool refusal_fits_uncounted(const struct refusal *refusal);

/* The driver has refused what the limit had let pass: at most four lines, and one about the report,
 * lest it be put down to the limit. */
void refusal_explain_driver(struct text *text, const struct refusal *refusal);

/* Adds what was asked for: "512 MiB", "a context", "code of 20 MiB", or nothing if that is not
 * known. */
void refusal_add_thing(struct text *text, const struct refusal *refusal);

/* Adds the beginning of a line that says who asked, and in which process. */
void refusal_add_asker(struct text *text, const struct refusal *refusal);

/* What a person can ask less of, NULL if there is nothing. */
const char *refusal_ask_less(enum limit_what what);

/* Adds a line that says where the report is, if there is one. */
void refusal_add_report(struct text *text, const struct refusal *refusal);

/* One line about later refusals on a device. */
void refusal_tell_more(struct text *text, unsigned device, const struct pace_turn *turn);

/* What happened to a device until the end. */
struct refusal_end {
    unsigned device;
    uint64_t limit_bytes, peak_bytes;
    const char *limit_text;
    uint64_t refused, recovered;
    uint64_t driver_refused; /* by the driver, not by the limit */
};

/* Adds one line about it. */
void refusal_add_end(struct text *text, const struct refusal_end *end);

#endif
