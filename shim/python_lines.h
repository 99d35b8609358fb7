/* SPDX-License-Identifier: MIT
 *
 * Line numbers of Python code, decoded from the tables that its compiler left. No interpreter is
 * asked: the tables never change, so any thread can read them.
 */
#ifndef SHIM_PYTHON_LINES_H
#define SHIM_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum python_lines {
    PYTHON_LINES_3_9,  /* co_lnotab: pairs of steps, in bytes and in lines */
    PYTHON_LINES_3_10, /* co_linetable: pairs too, and ranges that have no line */
    PYTHON_LINES_3_11, /* co_linetable: entries of several lengths, with columns */
};

/* Returns the line of the instruction at a byte offset; 0 if the table gives it none, or ends
 * before. first_line is where the code object begins. */
int32_t python_lines_find(enum python_lines form, const uint8_t *table, size_t bytes,
                          int32_t first_line, uint32_t offset);

#endif
