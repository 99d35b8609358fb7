/* SPDX-License-Identifier: MIT
 *
 * The ledger of a run with a history, for the tests of report and check.
 */
#ifndef GPULIMIT_TESTS_REPORT_FIXTURE_H
#define GPULIMIT_TESTS_REPORT_FIXTURE_H

#include "ledger_fixture.h"

/* Process 4121, which ended after 125 s: on GPU 0, limited to 1 GiB, it held 1000 MiB at most,
 * 12.345 s after the start, and was refused 3 requests. Of that 640 MiB are of model.py:31, from
 * two places of the program, and still live; 128 MiB of model.py:58; 32 MiB of native code; 100 MiB
 * each of idle pools and of overhead. Two marks and a timeline. */
void report_fixture_open(struct fixture *fixture);

#endif
