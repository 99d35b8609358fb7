/* SPDX-License-Identifier: MIT
 *
 * What /proc tells of one process that matters to a preloaded library: whether it is in there, and
 * if not, what kept it out.
 */
#ifndef GPULIMIT_TOOLS_PROCESS_H
#define GPULIMIT_TOOLS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_LIBRARY "libgpulimit.so"
#define PROCESS_DRIVER  "libcuda.so.1"

/* Strings are for process_drop; NULL stands for what there is not. */
struct process {
    int32_t pid;
    bool exists;
    bool is_readable; /* we may look into it; if not, all that follows is unknown */
    bool is_static;   /* the program has no dynamic linker, so nothing is preloaded */
    bool is_secure;   /* set-uid and the like: the dynamic linker ignores LD_PRELOAD */
    bool is_musl;     /* another libc, with its own dynamic linker */
    bool is_replaced; /* the loaded library's file is no longer there under its name */
    bool is_missing;  /* LD_PRELOAD names the library, but there is no such file */
    char *command;    /* its words with blanks between them */
    char *library;    /* the path it is loaded from */
    char *driver;
    char *preload; /* variables as they were when it was started: LD_PRELOAD, */
    char *folder;  /* GPU_LIMIT_DIR, */
    char *limit;   /* GPU_LIMIT_MB */
};

/* Looks at a process of our pid namespace. */
void process_look(int32_t pid, struct process *process);
void process_drop(struct process *process);

#endif
