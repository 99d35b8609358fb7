/* SPDX-License-Identifier: MIT
 *
 * Numbers and foreign strings as people read them. Pure: no files, no clock, no locale.
 */
#ifndef GPULIMIT_TOOLS_TEXT_H
#define GPULIMIT_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_CELL_BYTES 24 /* room for any number below, its NUL included */

/* "901.2M", "1024M", "12.0G": whole numbers are exact, all others are rounded to a tenth. MiB up to
 * 10 GiB, so that a figure and the limit it is compared with have the same unit. With `exact`:
 * "944963584". */
void text_print_bytes(uint64_t bytes, bool exact, char cell[TEXT_CELL_BYTES]);

/* "45s", "3m05s", "2h14m", "3d04h". */
void text_print_age(uint64_t seconds, char cell[TEXT_CELL_BYTES]);

/* A string from somebody else's process, made safe for a terminal: control characters, characters
 * that reorder or hide text, and bytes that are not UTF-8 become \x1b or \u202e. `is_utf8` false:
 * so do all characters beyond ASCII. For the caller to free(). */
char *text_clean(const char *bytes, bool is_utf8);

/* The same string as valid UTF-8, with nothing changed but the bytes that are not. For the caller
 * to free(). */
char *text_to_utf8(const char *bytes);

/* The number of letters to change, add or leave out to get from one word to the other, or to swap.
 */
size_t text_get_distance(const char *word, const char *other);

#endif
