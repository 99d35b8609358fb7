/* SPDX-License-Identifier: MIT
 *
 * The outcome of a check: for people, as JSON (schema gpulimit.check/1) and as JUnit's XML.
 */
#ifndef GPULIMIT_TOOLS_CHECK_PRINT_H
#define GPULIMIT_TOOLS_CHECK_PRINT_H

#include "check.h"
#include "emit_table.h"

/* What does not hold, each with who held the memory; or one line that all is well. */
void check_print(const struct check_request *request, const struct check *check,
                 const struct emit_style *style);

void check_print_json(const struct check *check, FILE *out);

/* A test suite of a test case an assertion. The file is there whole, or as it was before: false,
 * and errno says why. */
bool check_write_junit(const struct check_request *request, const struct check *check);

#endif
