/* SPDX-License-Identifier: MIT
 *
 * Which frame of a stack is named when one line has to say where memory was asked for: the one of
 * the least rank, of equals the innermost. The library, for its messages, and the tool ask here, so
 * they name the same.
 *
 * Pure. Any thread.
 */
#ifndef GPULIMIT_FRAMES_H
#define GPULIMIT_FRAMES_H

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum gpulimit_frame_rank {
    GPULIMIT_RANK_OWN_PYTHON, /* a line that is no framework's */
    GPULIMIT_RANK_OWN_NATIVE, /* a module that not every request passes through, or none known */
    GPULIMIT_RANK_ANY_PYTHON,
    GPULIMIT_RANK_ANY,
};

/* A path without its folders. */
static inline const char *gpulimit_frame_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum gpulimit_frame_sort { GPULIMIT_FRAMEWORK, GPULIMIT_PASSAGE, GPULIMIT_INTERPRETER };

/* Whether frames.def has the text, in the rows of that kind. */
static inline bool gpulimit_frame_is(enum gpulimit_frame_sort sort, const char *text)
{
    static const struct {
        enum gpulimit_frame_sort sort;
        const char *pattern;
    } rows[] = {
#define FRAME(_kind, _pattern, _text) {GPULIMIT_##_kind, _pattern},
#include "gpulimit/tbl/frames.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].sort == sort && fnmatch(rows[i].pattern, text, 0) == 0)
            return true;
    }
    return false;
}

/* file: of a Python frame. */
static inline enum gpulimit_frame_rank gpulimit_rank_python(const char *file)
{
    return gpulimit_frame_is(GPULIMIT_FRAMEWORK, file) ? GPULIMIT_RANK_ANY_PYTHON
                                                       : GPULIMIT_RANK_OWN_PYTHON;
}

/* path: of the module a native frame lies in; "" unknown. */
static inline enum gpulimit_frame_rank gpulimit_rank_native(const char *path)
{
    const char *base = gpulimit_frame_base(path);
    return gpulimit_frame_is(GPULIMIT_PASSAGE, base) ||
                   gpulimit_frame_is(GPULIMIT_INTERPRETER, base)
               ? GPULIMIT_RANK_ANY
               : GPULIMIT_RANK_OWN_NATIVE;
}

#endif
