/* SPDX-License-Identifier: MIT
 *
 * What the files of limit_oom.h share. All that is of unknown length asks for room first: a report
 * has a bound, and what comes last must fit too.
 */
#ifndef SHIM_LIMIT_OOM_PARTS_H
#define SHIM_LIMIT_OOM_PARTS_H

#include "limit_live.h"
#include "limit_oom.h"

#include "report/writer.h"

enum {
    LIMIT_OOM_TAIL = 64 << 10, /* bytes that are left to what follows the sites */
    LIMIT_OOM_END = 16 << 10,  /* and the events */
    LIMIT_OOM_EVENT = 2 << 10,
    LIMIT_OOM_SITE = 1 << 10,  /* a site without frames has no more, and no argument */
    LIMIT_OOM_FRAME = 4 << 10, /* nor has a frame: its file's path, every byte of it escaped */
};

/* Whether something of the sites was left out. */
bool limit_oom_is_full(const struct writer *writer);

/* The name of a kind of memory, and of a call site; NULL if it has none. */
const char *limit_oom_kind(uint32_t kind);
const char *limit_oom_where(const struct limit_live *live, uint32_t site);

/* Adds native_frames and python_frames of a site: as many as there is room for. */
void limit_oom_add_frames(struct writer *writer, const struct sites_kept *kept, uint32_t site);

/* Adds live_top, and all else that adds up to what is in use. */
void limit_oom_add_live(struct writer *writer, const struct limit_live *live, uint64_t mono_ns);

/* Adds recent_events: the newest first, of any device. */
void limit_oom_add_events(struct writer *writer, const struct limit_live *live);

/* Adds other_processes. */
void limit_oom_add_neighbours(struct writer *writer, const struct neighbours *neighbours);

/* Why it was refused. */
enum limit_oom_cause {
    LIMIT_OOM_LIMIT,
    LIMIT_OOM_LARGER,   /* than the whole limit */
    LIMIT_OOM_OVERHEAD, /* nothing that the program may free makes enough room */
    LIMIT_OOM_DRIVER,
    LIMIT_OOM_CONFIG, /* the device has no limit of its own, so nothing is allowed */
};
enum limit_oom_cause limit_oom_cause(const struct limit_oom *oom, const struct limit_live *live);

/* What is missing for it to pass. */
uint64_t limit_oom_shortfall(const struct limit_oom *oom, const struct limit_live *live);

/* Adds what a person can do about it. */
void limit_oom_add_hints(struct writer *writer, const struct limit_oom *oom,
                         const struct limit_live *live);

#endif
