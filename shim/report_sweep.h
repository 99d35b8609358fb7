/* SPDX-License-Identifier: MIT
 *
 * Keeps the folder of reports bounded: of many processes that were refused, the newest reports
 * stay. What a killed process was writing goes the same way.
 *
 * Any thread, after fork. No malloc. errno is not kept.
 */
#ifndef SHIM_REPORT_SWEEP_H
#define SHIM_REPORT_SWEEP_H

enum {
    REPORT_SWEEP_KEEP = 192, /* files: at most 48 MiB, and hardly ever a tenth of that */
    REPORT_SWEEP_ONCE = 8,   /* removed at most at once; a process writes three */
};

/* Removes the oldest reports of a folder that has more than REPORT_SWEEP_KEEP. The descriptor has
 * not been read from yet. */
void report_sweep(int folder);

#endif
