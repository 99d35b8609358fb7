/* SPDX-License-Identifier: MIT
 *
 * The report of a run: what each device held at most, when and for whom, what was refused, what is
 * live at the end. The library writes it when its process ends, gpulimit-stat from a ledger; as
 * JSON (schema gpulimit.report/1) or as lines for people. Device by device, so that nothing large
 * lies on anybody's stack.
 *
 * No malloc, no stdio, no locale; errno is not kept. Strings belong to the caller and stay while
 * anything here is used. Any thread, as long as nobody shares what is passed in.
 */
#ifndef GPULIMIT_REPORT_RUN_REPORT_H
#define GPULIMIT_REPORT_RUN_REPORT_H

#include "report/words.h"
#include "report/writer.h"

#include "gpulimit/region.h"

enum {
    REPORT_SITES = 10,
    REPORT_BYTES_MAX = 256 << 10, /* room for a report on all devices that a ledger lists */
    REPORT_BYTES_REST = 48 << 10, /* of that, for all but command and sites */
    REPORT_LINES_MAX = 12         /* of report_tell */
};

struct report_site {
    const char *where; /* "train.py:88 forward" */
    uint64_t bytes, count;
};

/* Who holds so many bytes: the largest first. sites + others + idle + overhead = bytes, always. */
struct report_holders {
    uint64_t bytes;
    struct report_site sites[REPORT_SITES];
    unsigned site_count;
    uint64_t others, others_bytes; /* call sites beyond those */
    uint64_t idle_bytes;           /* what pools, graphs and shared blocks hold and no allocation */
    uint64_t overhead_bytes;
};

struct report_head {
    const char *version; /* of the library */
    int pid;
    uint32_t uid;
    const char *state;          /* "live", "exited", "stale" */
    const char *const *command; /* arguments */
    unsigned command_count;
    const char *limit_text; /* GPU_LIMIT_MB as it was set; "" if it was not: null in JSON */
    bool counts_requests;
    uint64_t start_time_ns, end_time_ns; /* CLOCK_REALTIME; the end is 0 of a killed process */
};

struct report_device {
    unsigned gpu_index;
    const char *gpu_uuid;
    uint64_t limit_bytes;            /* GPULIMIT_NO_LIMIT */
    uint64_t peak_after_ns;          /* since the start */
    struct report_holders peak, end; /* end: now, of a process that lives */
    uint64_t requested_bytes, committed_bytes;
    uint64_t live_allocations, allocations_total, frees_total, largest_bytes;
    uint64_t denials, denials_recovered, denied_bytes, driver_denials;
};

/* A call site that holds memory: keeps the largest REPORT_SITES, adds up the others. One of 0 bytes
 * is none. Sites of one name are one: the caller sees to that. */
void report_add_site(struct report_holders *holders, const char *where, uint64_t bytes,
                     uint64_t count);

/* After the last site, and with bytes and overhead_bytes set: the rest of bytes that is neither
 * sites nor overhead is idle. Where there are more of those than bytes, as figures of different
 * moments can have it, overhead and the largest sites keep theirs and the smallest lose. */
void report_settle(struct report_holders *holders);

/* JSON: the head, then each device, then the end. Within REPORT_BYTES_MAX, sites for which there is
 * no room are added to the others. */
void report_begin(struct writer *writer, const struct report_head *head);
void report_add_device(struct writer *writer, const struct report_device *device);
void report_end(struct writer *writer);

/* The two halves of report_add_device, for who has members to add between them. */
void report_open_device(struct writer *writer, const struct report_device *device);
void report_close_device(struct writer *writer);

/* The same for people, each line beginning with `prefix`: a line for the process, at most
 * REPORT_LINES_MAX for each device, and where there is a ledger, a line on what to do next. Each
 * begins a text anew. */
void report_tell_head(struct text *text, const char *prefix, const struct report_head *head);
void report_tell(struct text *text, const char *prefix, const struct report_head *head,
                 const struct report_device *device);

/* Its middle, added to a text: a line for each of the largest holders, which add up. */
void report_add_holders(struct text *text, const char *prefix,
                        const struct report_holders *holders);

void report_tell_next(struct text *text, const char *prefix, const struct report_head *head);

#endif
