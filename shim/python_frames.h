/* SPDX-License-Identifier: MIT
 *
 * Where in a Python program a call came from: the calling thread's own Python frames.
 *
 * Without the GIL, which a hook can neither take (another thread may hold it and wait for a lock of
 * our caller's) nor expect to have. While a thread is in C code, its own frames stand still and
 * hold what they refer to, with the GIL or without: so they are read, and nothing else is. Nothing
 * of the interpreter's is changed, no reference counted, and no memory allocated.
 */
#ifndef SHIM_PYTHON_FRAMES_H
#define SHIM_PYTHON_FRAMES_H

#include <stdint.h>

/* A string in the interpreter's memory. It stays there until the call that is being looked at
 * returns. */
struct python_text {
    const void *data;
    uint32_t length; /* characters */
    uint32_t width;  /* bytes of each: 1, 2 or 4, Unicode's numbers */
};

struct python_frame {
    const void *code; /* the code object; its address may be another's once it has ended */
    int32_t line;     /* 0 unknown */
    struct python_text file, function;
};

/* The calling thread's frames, the innermost first. Returns how many there are, at most `most`: 0
 * if it runs no Python, the interpreter ends, or its version is not known. */
unsigned python_frames(struct python_frame *frames, unsigned most);

/* Writes a string's end as UTF-8: of a file's name it is the part that tells. At most `most` bytes,
 * without NUL. Returns how many. */
uint32_t python_text_copy(char *into, uint32_t most, const struct python_text *text);

#endif
