/* SPDX-License-Identifier: MIT
 *
 * Prints views as JSON for programs: schemas gpulimit.stat/1, gpulimit.hooks/1 and
 * gpulimit.doctor/1. Within a schema keys may be added, never removed or given another type.
 */
#ifndef GPULIMIT_TOOLS_EMIT_JSON_H
#define GPULIMIT_TOOLS_EMIT_JSON_H

#include <stdio.h>

#include "doctor.h"
#include "growth.h"
#include "symbols.h"
#include "view.h"
#include "warnings.h"

struct emit_json_style {
    FILE *out;
    bool has_allocations; /* each process has its allocations[], but for those on devices that the
                             view does not show */
    bool is_stream;       /* all on one line */
    const struct growth *growth; /* each process has its growing[]; NULL: none has */
    struct symbols *symbols;     /* for native frames; NULL: they have no names */
};

/* One object and a newline. */
void emit_json_view(const struct view *view, const struct warnings *warnings,
                    const struct emit_json_style *style);
void emit_json_hooks(FILE *out);
void emit_json_doctor(const struct doctor *doctor, FILE *out);

#endif
