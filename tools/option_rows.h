/* SPDX-License-Identifier: MIT
 *
 * From rows of a table of options to what getopt_long wants, and back. One thread.
 */
#ifndef GPULIMIT_TOOLS_OPTION_ROWS_H
#define GPULIMIT_TOOLS_OPTION_ROWS_H

#include <getopt.h>
#include <stddef.h>

struct option_row {
    char letter;          /* 0: none */
    const char *name;     /* less its dashes */
    const char *argument; /* "": none follows */
    const char *text;
};

/* Fills longs[count + 1] and shorts[2 * count + 2]. mode is getopt's own first character: '+' stops
 * at the first word that is no option, ':' tells a missing argument from an unknown option. */
void option_rows_list(const struct option_row *rows, size_t count, char mode, struct option *longs,
                      char *shorts);

/* The number of the row that getopt_long's value stands for; count if it is none's. */
size_t option_rows_find(const struct option_row *rows, size_t count, int value);

#endif
