/* SPDX-License-Identifier: MIT
 *
 * Runs a tool as a user would, and keeps what it said; and a folder of ledgers for it to look at.
 * For the tests of this folder.
 */
#ifndef GPULIMIT_TESTS_TOOL_RUN_H
#define GPULIMIT_TESTS_TOOL_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "ledger_fixture.h"

struct tool_result {
    int status; /* exit status; 128 + the signal that ended it */
    char *out;
    char *err; /* on a terminal: NULL, both are in `out`, with carriage returns left out */
};

/* Runs a program of the build's tools/ to its end; the first word is its name, the last NULL. A
 * result is for tool_forget. */
void tool_run(const char *const words[], struct tool_result *result);
void tool_run_on_terminal(unsigned short rows, unsigned short columns, const char *const words[],
                          struct tool_result *result);
void tool_forget(struct tool_result *result);

#define TOOL_RUN(_result, ...) tool_run((const char *const[]){__VA_ARGS__, NULL}, _result)
#define TOOL_RUN_ON_TERMINAL(_result, _rows, _columns, ...)                                        \
    tool_run_on_terminal(_rows, _columns, (const char *const[]){__VA_ARGS__, NULL}, _result)

/* Starts one whose stdout is a pipe, and sends it a signal as soon as it has said something.
 * Returns what tool_run calls its status. */
int tool_interrupt(const char *const words[], int signal);

/* A new folder, empty, in which GPU_LIMIT_DIR makes the tools look; a locale and a terminal that do
 * not depend on who runs the test. folder_close removes it with all ledgers. For cmocka's set-up
 * and tear-down. */
int folder_open(void **state);
int folder_close(void **state);
const char *folder_get_path(void);

/* Writes a ledger called gpulimit.NAME there; a live one is locked until folder_close. Closes the
 * fixture. */
void folder_add(struct fixture *fixture, const char *name, bool is_live);

/* Makes that library the libnvidia-ml.so.1 of all that is run from now on. */
void folder_add_nvml(const char *library);

#endif
