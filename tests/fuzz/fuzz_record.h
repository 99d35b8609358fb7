/* SPDX-License-Identifier: MIT
 *
 * What holds of every report of a run, wherever it came from.
 */
#ifndef GPULIMIT_TESTS_FUZZ_RECORD_H
#define GPULIMIT_TESTS_FUZZ_RECORD_H

#include "record.h"

/* Ends the program if the parts of what is held do not add up, or if what is written of the report
 * cannot be read again; prints it every way there is, for the sanitizers to watch. */
void fuzz_check_record(const struct record *record);

#endif
