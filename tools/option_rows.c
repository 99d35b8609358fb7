/* SPDX-License-Identifier: MIT
 *
 * The tables of option_rows.h.
 */
#include "option_rows.h"

#include <stdbool.h>

enum { OPTION_ROWS_BASE = 256 }; /* getopt's values for options: no letter, no '?' */

void option_rows_list(const struct option_row *rows, size_t count, char mode, struct option *longs,
                      char *shorts)
{
    char *end = shorts;

    *end++ = mode;
    for (size_t i = 0; i < count; i++) {
        bool has_argument = rows[i].argument[0] != '\0';

        longs[i] = (struct option){.name = rows[i].name,
                                   .has_arg = has_argument ? required_argument : no_argument,
                                   .val = OPTION_ROWS_BASE + (int)i};
        if (rows[i].letter) {
            *end++ = rows[i].letter;
            if (has_argument) {
                *end++ = ':';
            }
        }
    }
    longs[count] = (struct option){0};
    *end = '\0';
}

size_t option_rows_find(const struct option_row *rows, size_t count, int value)
{
    for (size_t i = 0; i < count; i++) {
        if (value == OPTION_ROWS_BASE + (int)i || value == rows[i].letter) {
            return i;
        }
    }
    return count;
}
