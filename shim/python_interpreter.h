/* SPDX-License-Identifier: MIT
 *
 * Finds the Python interpreter that runs in this process, if there is one: in the program itself,
 * or in a library that it brought along, at its start or later.
 *
 * Any thread, with or without the GIL; no lock is held afterwards, no memory allocated. A fork
 * waits for who is looking.
 */
#ifndef SHIM_PYTHON_INTERPRETER_H
#define SHIM_PYTHON_INTERPRETER_H

#include "python_layouts.h"

#include <stdatomic.h>

struct python_interpreter {
    struct python_layout layout;
    const void *(*own_thread)(void); /* the calling thread's state, NULL if it has none */
    int (*is_finalizing)(void);
    const void *code_type, *text_type, *bytes_type;
};

/* How far a layout may be trusted. */
enum python_trust {
    PYTHON_UNTRIED, /* nothing was read by it yet */
    PYTHON_TRUSTED, /* a whole stack made sense */
    PYTHON_WRONG,   /* it did not: not to be read again */
};

/* Returns the interpreter, and where its trust is kept; NULL if there is none, or of a version that
 * is not known. */
const struct python_interpreter *python_interpreter_find(_Atomic int **trust);

#endif
