/* SPDX-License-Identifier: MIT
 *
 * Text for people, built in a buffer of the caller's: what does not fit is cut off. No malloc, no
 * stdio, no locale.
 *
 * Any thread, after fork, in signal handlers.
 */
#ifndef GPULIMIT_REPORT_WORDS_H
#define GPULIMIT_REPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>

struct text {
    size_t length;
    char bytes[2048]; /* what does not fit is cut off */
};

void text_init(struct text *text);
void text_add(struct text *text, const char *string);
void text_add_byte(struct text *text, char byte);

/* Adds a string from outside: control characters become '?', what is over max_bytes is left out. */
void text_add_quoted(struct text *text, const char *string, size_t max_bytes);
void text_add_number(struct text *text, uint64_t number);

/* Adds a number in hexadecimal, without 0x. */
void text_add_hex(struct text *text, uint64_t number);

/* Adds a size as people say it: "512 MiB", "1.5 GiB", "700 bytes". Exact up to one decimal, rounded
 * up, so that a size just over a limit never reads as the limit itself. */
void text_add_size(struct text *text, uint64_t bytes);

/* The text as a string. */
const char *text_string(struct text *text);

#endif
