/* SPDX-License-Identifier: MIT
 *
 * A process for gpulimit-stat doctor to look at, and what the doctor has to say of it. It is a
 * child of the test: for the doctor a process runs under the library if it maps a file of that
 * name. One at a time.
 */
#ifndef GPULIMIT_TESTS_PATIENT_H
#define GPULIMIT_TESTS_PATIENT_H

#include "tool_run.h"

/* What a child looks like. */
struct patient_looks {
    bool has_library, has_driver, has_ledger;
    void (*change)(struct fixture *fixture); /* of the ledger, or NULL */
};

extern pid_t patient_process;
extern char patient_pid[16];    /* the same as a word */
extern char patient_folder[32]; /* of the files that it maps */

/* Starts a child and waits until it looks as it should. `words`, if not NULL: it becomes that
 * program. */
void patient_start(const struct patient_looks *looks, const char *variable,
                   const char *const words[]);
void patient_stop(void);

/* Runs the doctor on the child. The output has to hold each of the lines, "@" standing for the
 * child's number, and to end with the last of them. */
void patient_expect(int status, const char *const lines[]);

#define PATIENT_EXPECT(_status, ...)                                                               \
    patient_expect(_status, (const char *const[]){__VA_ARGS__, NULL})

/* For cmocka's set-up and tear-down: a folder of ledgers as well. */
int patient_set_up(void **state);
int patient_tear_down(void **state);

#endif
