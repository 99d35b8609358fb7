/* SPDX-License-Identifier: MIT
 *
 * Writes text for people with one write(2): a line of ours must not tear one of the program's, and
 * stdio would call malloc, in a hook that may run inside an allocator.
 *
 * Any thread. errno is left as it was.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include "report/words.h"

/* Where log_write writes: "stderr" (the start), "none", or a path, in which %p stands for the pid.
 * The string must stay. */
void log_set_target(const char *target);

/* Writes the text. An error on the way is nobody's to hear of, so it is dropped. */
void log_write(const struct text *text);

/* Writes it to stderr, whatever the target. */
void log_write_stderr(const struct text *text);

/* Adds a path, in which %p stands for the pid. */
void log_add_path(struct text *text, const char *path);

#endif
