/* SPDX-License-Identifier: MIT
 *
 * What went wrong while looking, kept for the end: one line each on stderr, and warnings[] in JSON.
 */
#ifndef GPULIMIT_TOOLS_WARNINGS_H
#define GPULIMIT_TOOLS_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>

struct warning {
    const char *code; /* constant; part of the JSON output */
    char *message;    /* without the path */
    char *path;       /* NULL if it is about no file */
};

struct warnings {
    struct warning *list;
    size_t count;
};

/* Appends a warning. `code` is kept, the rest copied. */
__attribute__((format(printf, 4, 5))) void warnings_add(struct warnings *warnings, const char *code,
                                                        const char *path, const char *format, ...);

/* Prints each as a line on stderr; ledgers that may not be read, which on a shared machine are
 * many, in one. Paths and messages are made safe for a terminal. */
void warnings_print(const struct warnings *warnings);

/* Empties the list. */
void warnings_drop(struct warnings *warnings);

#endif
