/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that fills in the report of a run: who held a device when it was fullest,
 * and who holds it now. See limit.h for threads and forks.
 */
#ifndef SHIM_LIMIT_REPORT_H
#define SHIM_LIMIT_REPORT_H

#include "books.h"

#include "report/run_report.h"

/* Fills in the figures of a device, with the books locked by the caller. Names stay until a fork.
 * start_mono_ns: when the run began. */
void limit_report(struct books *books, unsigned device, uint64_t start_mono_ns,
                  struct report_device *report);

#endif
