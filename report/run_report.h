/* SPDX-License-Identifier: MIT
 *
 * The report of a run: what each device held at most, when and for whom, what was refused, what is
 * live at the end. The library writes it when its process ends, gpulimit-stat from a ledger; as
 * JSON (schema gpulimit.report/1) or as lines for people. Device by device, so that nothing large
 * lies on anybody's stack.
 *
 * No malloc, no stdio, no locale; errno is not kept. Strings belong to the caller.
 */
#ifndef GPULIMIT_REPORT_RUN_REPORT_H
#define GPULIMIT_REPORT_RUN_REPORT_H

#include "report/words.h"
#include "report/writer.h"

#include "gpulimit/region.h"

enum { REPORT_SITES = 10, REPORT_BYTES_MAX = 256 << 10 };

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
    const char *limit_text; /* GPU_LIMIT_MB as it was set; "" if it was not */
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

/* A holder of a call site: keeps the largest REPORT_SITES, adds up the others. Sites of one name
 * are one: the caller sees to that. */
void report_add_site(struct report_holders *holders, const char *where, uint64_t bytes,
                     uint64_t count);

/* After the last site: the rest of holders->bytes that is neither sites nor overhead is idle. */
void report_settle(struct report_holders *holders);

/* JSON: the head, then each device, then the end. */
void report_begin(struct writer *writer, const struct report_head *head);
void report_add_device(struct writer *writer, const struct report_device *device);
void report_end(struct writer *writer);

/* The same for people: at most twelve lines for a device, each beginning with `prefix`. */
void report_tell(struct text *text, const char *prefix, const struct report_head *head,
                 const struct report_device *device);

#endif
