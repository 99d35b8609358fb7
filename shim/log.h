/* SPDX-License-Identifier: MIT
 *
 * Text for people: built in a buffer of the caller's and written with one write(2). No malloc, no
 * stdio: a hook can run inside an allocator, and a line of ours must not tear one of the program's.
 *
 * Any thread. errno is left as it was.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    size_t length;
    char bytes[2048]; /* what does not fit is cut off */
};

void text_init(struct text *text);
void text_add(struct text *text, const char *string);

/* Adds a string from outside: control characters become '?', what is over max_bytes is left out. */
void text_add_quoted(struct text *text, const char *string, size_t max_bytes);
void text_add_number(struct text *text, uint64_t number);

/* Adds a size as people say it: "512 MiB", "1.5 GiB", "700 bytes". Exact up to one decimal, rounded
 * up, so that a size just over a limit never reads as the limit itself. */
void text_add_size(struct text *text, uint64_t bytes);

/* The text as a string. */
const char *text_string(struct text *text);

/* Where log_write writes: "stderr" (the start), "none", or a path, in which %p stands for the pid.
 * The string must stay. */
void log_set_target(const char *target);

/* Writes the text. An error on the way is nobody's to hear of, so it is dropped. */
void log_write(const struct text *text);

#endif
