/* SPDX-License-Identifier: MIT
 *
 * The report of a refusal, a file of JSON (schema gpulimit.oom/1, docs/schemas/oom.schema.json):
 * all that is known at that moment, for whoever looks into it later, on another machine. Numbers
 * and names of places in code; nothing of the environment, no source text, nothing of what is in
 * the memory.
 *
 * What is about the books is taken at one moment, under their lock, and written without it. Any
 * thread; see limit.h for forks. errno is not kept.
 */
#ifndef SHIM_LIMIT_OOM_H
#define SHIM_LIMIT_OOM_H

#include "oom_pick.h"
#include "refusal.h"
#include "report_file.h"

struct limit_oom {
    const struct ticket *ticket;
    const struct refusal *refusal;
    bool is_by_driver; /* the limit had let it pass */
    enum oom_number number;
    uint64_t begun_ns; /* by CLOCK_REALTIME_COARSE: reports of this process are no older than that
                          of its first */
};

/* Writes it, and puts its path into path. Returns false if there is none. */
bool limit_oom_write(const struct limit_oom *oom, char path[REPORT_FILE_PATH]);

#endif
