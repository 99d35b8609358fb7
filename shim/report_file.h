/* SPDX-License-Identifier: MIT
 *
 * Where reports of the library go: a folder that belongs to this user alone, and files in it that
 * appear whole or not at all. Whatever stands in the way costs the report, and nobody is told: a
 * folder that others can write to, a full disk, a limit on the size of files, over which the kernel
 * would send a signal that kills.
 *
 * Any thread, after fork. The umask and the current folder are left alone; errno is not kept.
 */
#ifndef SHIM_REPORT_FILE_H
#define SHIM_REPORT_FILE_H

#include "report/words.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REPORT_FILE_MOST = 256 << 10,  /* bytes of one report */
    REPORT_FILE_LEAST = 128 << 10, /* a process whose files must be smaller gets none */
    REPORT_FILE_PATH = 352,
};

struct report_file {
    int folder;
    int file;            /* to be written to */
    uint64_t most_bytes; /* that may be written */
    char temporary[64];
    char path[REPORT_FILE_PATH]; /* where it will be */
    char *name;                  /* the end of that, behind the folder's */
};

/* Begins report number `number` of this process, of those about refusals: oom-PID-NUMBER.json. Its
 * folder is the chosen one ("none": none), or if that is "" the folder gpulimit in runtime_dir, or
 * if there is none /tmp/gpulimit-UID; it is made if it is missing. Returns false if there can be no
 * report. */
bool report_file_begin(struct report_file *file, const char *chosen, const char *runtime_dir,
                       unsigned number);

/* Ends it: a whole one takes the place of an older one of its number, else nothing has happened.
 * Returns false if there is no report now. */
bool report_file_end(struct report_file *file, bool is_whole);

/* Removes report number `number` of a process that had the same pid, from the folder of a report
 * that has begun: one that was written before a moment of CLOCK_REALTIME_COARSE, the clock of
 * files. */
void report_file_remove(const struct report_file *file, unsigned number, uint64_t before_ns);

/* Makes a text the content of a file that is there, and a regular one; nothing is created. */
void report_file_put(const char *path, const struct text *text);

#endif
