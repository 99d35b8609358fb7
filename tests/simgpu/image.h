/* SPDX-License-Identifier: MIT
 *
 * What a module image says about the memory that it needs. There is no code to run, so that is all
 * that matters of it:
 *   PTX                        the variables that it declares as .global or .const
 *   simgpu-module globals=N code=M   one variable, "globals", of N bytes, and M bytes of code
 *   cubins and fat binaries    taken, and cost nothing
 * Decides only; holds no state.
 */
#ifndef SIMGPU_IMAGE_H
#define SIMGPU_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_NAME_BYTES 64u

enum image_kind {
    IMAGE_NONE,
    IMAGE_PTX,
    IMAGE_TEXT,
    IMAGE_BINARY,
};

struct image_variable {
    char name[IMAGE_NAME_BYTES];
    uint64_t bytes;
};

enum image_kind image_recognize(const void *image);

/* The next variable at or after *at, which moves behind it. Start with the image itself.
 *   false: there are no more. */
bool image_next_variable(enum image_kind kind, const char **at, struct image_variable *variable);

uint64_t image_code_bytes(enum image_kind kind, const void *image);

#endif
