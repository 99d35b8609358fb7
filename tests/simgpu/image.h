/* SPDX-License-Identifier: MIT
 *
 * What a module image says about the memory that it needs. There is no code to run, so that is all
 * that matters of it:
 *   PTX                        the variables that it declares as .global or .const; its kernels
 *                              (.entry) with the .local variables between this and the next one;
 *                              whether it names malloc and vprintf
 *   simgpu-module [globals=N] [code=N] [local=N] [heap] [printf]
 *                              one variable, "globals", of N bytes, N bytes of code, and one
 *                              kernel, "kernel", that wants N bytes of local memory a thread;
 *                              whether its code calls malloc and printf
 *   cubins and fat binaries    taken, have any kernel that is asked for, and cost nothing
 * Decides only; holds no state.
 */
#ifndef SIMGPU_IMAGE_H
#define SIMGPU_IMAGE_H

#include "overhead.h"

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

/* A copy for the caller to free: of a binary, whose end nobody knows, its first bytes. NULL: no
 * memory. */
char *image_copy(const void *image);

/* What its code needs as it is loaded; a kernel then adds what it needs itself. */
struct overhead_needs image_needs(enum image_kind kind, const void *image);

/* false: it has no such kernel. */
bool image_find_kernel(enum image_kind kind, const void *image, const char *name,
                       struct overhead_needs *needs);

#endif
