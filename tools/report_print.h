/* SPDX-License-Identifier: MIT
 *
 * Reports of runs and of refusals, printed: for people, as JSON, and two of them side by side.
 */
#ifndef GPULIMIT_TOOLS_REPORT_PRINT_H
#define GPULIMIT_TOOLS_REPORT_PRINT_H

#include <jansson.h>

#include "emit_table.h"
#include "record.h"

/* What the library tells at the end of the run, then the use over time and the trend between the
 * program's marks. */
void report_print_record(const struct record *record, const struct emit_style *style);

/* The same as JSON, schema gpulimit.report/1, straight to a descriptor. False if not all of it
 * could be written. */
bool report_print_json(const struct record *record, int file);

/* A document of schema gpulimit.oom/1. What it lacks is left out. */
void report_print_refusal(json_t *root, const struct emit_style *style);

/* What changed from one run to the other, by GPU: figures, and the sites at the peak. */
void report_print_diff(const struct record *before, const struct record *after,
                       const struct emit_style *style);

/* A text of report/words.h, whose lines are made safe for a terminal. */
void report_print_text(struct text *text, const struct emit_style *style);

#endif
