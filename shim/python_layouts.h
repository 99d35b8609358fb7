/* SPDX-License-Identifier: MIT
 *
 * Where CPython keeps what a stack trace needs, by version: offsets in bytes, on 64-bit Linux.
 *
 * From 3.13 on the interpreter carries such a table itself, for debuggers; 3.9 to 3.12 are written
 * down here, as offsetof() gave them with the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1. They
 * do not change within a minor version. Builds without a GIL have no layout here.
 */
#ifndef SHIM_PYTHON_LAYOUTS_H
#define SHIM_PYTHON_LAYOUTS_H

#include "python_lines.h"

#include <stdbool.h>

/* How a frame says which instruction it is at. */
enum python_instruction {
    PYTHON_INSTRUCTION_BYTES,   /* int32_t, offset in bytes */
    PYTHON_INSTRUCTION_UNITS,   /* int32_t, offset in units of two bytes */
    PYTHON_INSTRUCTION_POINTER, /* into the code object */
};

struct python_layout {
    uint16_t thread_frame;  /* of a thread: its innermost frame, or what holds that */
    uint16_t thread_cframe; /* of what holds it; PYTHON_NO_CFRAME */
    uint16_t frame_code, frame_previous, frame_instruction;
    uint16_t frame_owner; /* who the frame belongs to, a byte; PYTHON_NO_OWNER */
    uint16_t code_file, code_function, code_first_line, code_lines, code_start;
    uint16_t bytes_size, bytes_data;
    uint16_t text_length, text_state;
    uint16_t text_ascii, text_wide; /* where characters are: of an ASCII string, and of others */
    enum python_instruction instruction;
    enum python_lines lines;
    bool may_shift_state; /* the bits of text_state may be 16 higher */
};

enum {
    PYTHON_NO_CFRAME = UINT16_MAX,
    PYTHON_NO_OWNER = UINT16_MAX,
    PYTHON_OBJECT_TYPE = 8, /* of every object */
};

/* version is what Py_GetVersion says; runtime is _PyRuntime's address. Returns false if this
 * version is not known. */
bool python_layouts_find(const char *version, const void *runtime, struct python_layout *layout);

#endif
