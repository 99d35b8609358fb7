/* SPDX-License-Identifier: MIT
 *
 * Call sites of a ledger: their frames, and the rule which of these is named when one line has to
 * say where memory was asked for. Pure, as the view is.
 */
#ifndef GPULIMIT_TOOLS_SITES_H
#define GPULIMIT_TOOLS_SITES_H

#include <stdint.h>

#include "gpulimit/reader.h"

#define SITES_NO_FRAME UINT32_MAX

struct sites_frame {
    uint32_t kind; /* enum gpulimit_frame_kind, or one of a newer writer */

    const struct gpulimit_module *module; /* native: NULL unknown */
    uint64_t address;                     /* the return address, as the module's file counts */

    const char *file; /* python: "" unknown, likewise below */
    const char *function;
    uint32_t line;
};

/* Frames are numbered from 0, the innermost. `site` may be NULL: no frames. */
uint32_t sites_get_count(const struct gpulimit_site *site);
struct sites_frame sites_get_frame(const struct gpulimit_ledger *ledger,
                                   const struct gpulimit_site *site, uint32_t number);

/* By the rule of gpulimit/frames.h: the innermost Python frame that is not of a framework; if there
 * is none, the innermost native frame outside the driver, the runtime, this library and libc; if
 * all are inside, the innermost of Python, or of all. SITES_NO_FRAME if there are no frames. */
uint32_t sites_choose(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site);

/* Of the Python frames alone: outside frameworks, else the innermost, else SITES_NO_FRAME. */
uint32_t sites_choose_python(const struct gpulimit_ledger *ledger,
                             const struct gpulimit_site *site);

/* What the thread had pushed when it asked; "" if nothing. */
const char *sites_get_tag(const struct gpulimit_ledger *ledger,
                          const struct gpulimit_ledger_entry *entry);

/* The name of the stream that it was asked for on; likewise. */
const char *sites_get_stream(const struct gpulimit_ledger *ledger,
                             const struct gpulimit_ledger_entry *entry);

/* 0 if both are the same place. */
int sites_compare_frames(const struct sites_frame *a, const struct sites_frame *b);

#endif
