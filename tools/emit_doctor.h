/* SPDX-License-Identifier: MIT
 *
 * Prints what the doctor found, for people.
 */
#ifndef GPULIMIT_TOOLS_EMIT_DOCTOR_H
#define GPULIMIT_TOOLS_EMIT_DOCTOR_H

#include "doctor.h"
#include "emit_table.h"

/* A line for each finding, with what to do below it, and a last line that sums up. */
void emit_doctor(const struct doctor *doctor, const struct emit_style *style);

#endif
