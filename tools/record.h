/* SPDX-License-Identifier: MIT
 *
 * The report of a run in memory, whether it was made of a ledger or read from a file: what report,
 * check and their tables are about. The figures are those of report/run_report.h; the history is
 * what gpulimit-stat adds to them.
 */
#ifndef GPULIMIT_TOOLS_RECORD_H
#define GPULIMIT_TOOLS_RECORD_H

#include <stddef.h>

#include "gpulimit/reader.h"
#include "report/run_report.h"
#include "symbols.h"
#include "view.h"

#define RECORD_TIME_MAX (UINT64_C(18446744072) * 1000000000) /* whole seconds, in 64 bits */

/* A point that the program named. */
struct record_mark {
    const char *name;
    uint64_t after_ns; /* since the start */
    uint64_t charged_bytes;
    uint64_t peak_bytes; /* since the mark before */
    uint64_t requested_bytes;
    uint64_t allocations_total;
    uint64_t live_allocations;
    uint64_t denials; /* since the start */
};

struct record_device {
    struct report_device figures; /* settled */
    struct record_mark *marks;    /* the oldest first */
    size_t mark_count;
    struct gpulimit_ledger_sample *samples; /* each of interval_ns */
    size_t sample_count;
    uint64_t samples_after_ns; /* since the start */
    uint64_t interval_ns;
};

/* Zero-initialised it is empty. Its strings are its own. */
struct record {
    struct report_head head;
    struct record_device *devices;
    size_t device_count;
    const char **arguments; /* head.command */
    char **texts;           /* all strings */
    size_t text_count;
};

/* Makes the report of a ledger that was read with entries and history. Figures that JSON has no
 * room for stay at the edge of it. */
void record_from_ledger(const struct gpulimit_ledger *ledger, struct symbols *symbols,
                        struct record *record);

/* Leaves out the devices that the filter does not let pass. */
void record_filter(struct record *record, const struct view_filter *filter);

void record_drop(struct record *record);

/* For whoever fills one: keeps a copy of a string; adds an argument, a device, a mark or a sample,
 * zero-initialised. Pointers into arrays are good until the next of the kind is added. */
const char *record_keep(struct record *record, const char *text);
void record_add_argument(struct record *record, const char *argument);
struct record_device *record_add_device(struct record *record);
struct record_mark *record_add_mark(struct record_device *device);
struct gpulimit_ledger_sample *record_add_sample(struct record_device *device);

#endif
