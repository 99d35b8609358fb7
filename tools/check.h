/* SPDX-License-Identifier: MIT
 *
 * Assertions about a run, for continuous integration: each holds or does not, for each GPU. Pure;
 * a new one is a row of a table in check.c.
 */
#ifndef GPULIMIT_TOOLS_CHECK_H
#define GPULIMIT_TOOLS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define CHECK_PERCENT UINT64_C(100) /* tolerances are in hundredths of a per cent */

struct check_request {
    bool has_peak, has_denials, has_live; /* which are asserted */
    uint64_t peak_below_bytes;
    uint64_t max_denials;
    uint64_t max_live_bytes;
    const char *base_path;  /* the run to compare with; NULL none */
    uint64_t tolerance;     /* how much more than that the peak may be */
    const char *junit_path; /* NULL none */
};

/* What can be asserted. */
struct check_row {
    const char *name;           /* part of the JSON output */
    const char *before, *after; /* words around the figure */
    bool is_below;              /* less than expected; else no more than that */
    bool is_count;              /* else bytes */
    bool is_at_end;             /* who holds: at the end, or else at the peak */

    /* What is expected; false if nothing is. `base` is NULL without base_path. */
    bool (*get_expected)(const struct check_request *request, const struct record *base,
                         const struct report_device *device, uint64_t *expected);
    uint64_t (*get_actual)(const struct report_device *device);
};

/* One assertion about one GPU. */
struct check_result {
    const struct check_row *row;
    const struct report_device *device; /* the record's */
    bool is_ok;
    uint64_t expected;
    uint64_t actual;
};

struct check {
    struct check_result *results; /* by GPU */
    size_t count;
    size_t fails;
};

/* `base` is NULL without base_path. The check points into the record and dies with it. */
void check_open(const struct check_request *request, const struct record *record,
                const struct record *base, struct check *check);
void check_close(struct check *check);

/* What is wrong, or asserted, in a few words: "GPU 0: peak 1000 MiB, not below 900 MiB". */
void check_explain(const struct check_request *request, const struct check_result *result,
                   struct text *text);

/* Who held the memory that an assertion is about; at the end of what is live alone. */
struct report_holders check_get_holders(const struct check_result *result);

#endif
