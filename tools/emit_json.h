/* SPDX-License-Identifier: MIT
 *
 * Prints views as JSON for programs: schemas gpulimit.stat/1, gpulimit.hooks/1 and
 * gpulimit.doctor/1. Within a schema keys may be added, never removed or given another type.
 */
#ifndef GPULIMIT_TOOLS_EMIT_JSON_H
#define GPULIMIT_TOOLS_EMIT_JSON_H

#include <stdio.h>

#include "doctor.h"
#include "view.h"
#include "warnings.h"

/* One object and a newline; on a single line if `is_stream`. With `has_allocations` each process
 * has its allocations[], those on devices that the view does not show left out. */
void emit_json_view(const struct view *view, const struct warnings *warnings, bool has_allocations,
                    bool is_stream, FILE *out);
void emit_json_hooks(FILE *out);
void emit_json_doctor(const struct doctor *doctor, FILE *out);

#endif
