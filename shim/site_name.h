/* SPDX-License-Identifier: MIT
 *
 * What a person would call a call site, in a few words: the innermost line of the program's own
 * ("train.py:88 forward"), or the innermost module that is neither driver nor runtime. Frames are
 * told one by one, innermost first, native ones before Python's. By the rule of gpulimit/frames.h.
 *
 * Pure, but for what it is given. Any thread.
 */
#ifndef SHIM_SITE_NAME_H
#define SHIM_SITE_NAME_H

#include <stdint.h>

enum { SITE_NAME_BYTES = 64 };

/* Zero-initialised at first. */
struct site_name {
    char text[SITE_NAME_BYTES]; /* the best of all that was told; "" if nothing was */
    unsigned rank;              /* enum gpulimit_frame_rank */
};

void site_name_add_python(struct site_name *name, const char *file, const char *function,
                          uint32_t line);
/* path: of the module, "" if the address lies in none. */
void site_name_add_native(struct site_name *name, const char *path, uint64_t place);

#endif
