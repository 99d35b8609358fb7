/* SPDX-License-Identifier: MIT
 *
 * Is the limit in force, and if not, why, and what is to be done? Judges one process, or this
 * machine and all its limited processes. What is found is printed elsewhere.
 */
#ifndef GPULIMIT_TOOLS_DOCTOR_H
#define GPULIMIT_TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process.h"
#include "snapshot.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARN, /* the limit is in force as far as can be seen, but this is worth knowing */
    DOCTOR_FAIL, /* it is not, or nobody can see whether it is */
};

struct doctor_finding {
    enum doctor_level level;
    int32_t pid;       /* of the process it is about; 0: of the machine */
    const char *check; /* constant; part of the JSON output */
    char *text;
    char *advice; /* what to do; NULL if there is nothing to be done */
};

struct doctor {
    struct doctor_finding *findings;
    size_t count;
    size_t fails, warns;
    bool is_idle; /* no process was there to look at, and none was asked for */
};

/* What to look at. */
struct doctor_request {
    const struct snapshot *snapshot;
    const char *const *folders; /* those that the snapshot is of */
    size_t folder_count;
    const int32_t *pids; /* none: every live ledger's process, in short */
    size_t pid_count;
};

/* Looks and judges; the findings are for doctor_drop. */
void doctor_examine(const struct doctor_request *request, struct doctor *doctor);
void doctor_drop(struct doctor *doctor);

/* Constant names: "ok", "warn", "fail". */
const char *doctor_level_name(enum doctor_level level);

/* For the other parts: appends a finding. `text` and `advice`, which may be NULL, are kept, to be
 * freed by doctor_drop. */
void doctor_add(struct doctor *doctor, enum doctor_level level, int32_t pid, const char *check,
                char *text, char *advice);

/* Judges a folder of ledgers. */
void doctor_examine_folder(const char *folder, struct doctor *doctor);

/* Judges one process, asked for by a number of its own pid namespace or of ours. */
void doctor_examine_process(const struct doctor_request *request, int32_t pid,
                            struct doctor *doctor);

/* Of a live process: its limit on each GPU, and whether the card has less. `command` is for advice.
 */
void doctor_examine_limit(const struct gpulimit_ledger *ledger, int32_t pid, const char *command,
                          struct doctor *doctor);

/* Of a live process: what its overhead rests on, and what nothing explains. In doctor_overhead.c.
 */
void doctor_examine_overhead(const struct gpulimit_ledger *ledger, int32_t pid,
                             struct doctor *doctor);

#endif
