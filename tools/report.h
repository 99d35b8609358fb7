/* SPDX-License-Identifier: MIT
 *
 * The verbs report and check of gpulimit-stat: find what they are about, then print it or judge it.
 */
#ifndef GPULIMIT_TOOLS_REPORT_H
#define GPULIMIT_TOOLS_REPORT_H

#include "emit_table.h"
#include "options.h"

/* Each returns the exit status. */
int report_run(const struct options *options, const struct emit_style *style);
int report_run_check(const struct options *options, const struct emit_style *style);

#endif
