/* SPDX-License-Identifier: MIT
 *
 * What the tests of reports of refusals share: programs that are refused, and the reading of what
 * they leave in a folder of the test's own.
 */
#ifndef TESTS_PRELOAD_OOM_H
#define TESTS_PRELOAD_OOM_H

#include "preload.h"

#include "program.h"

#include <jansson.h>

enum { OOM_TEXT_BYTES = (256 << 10) + 2 }; /* and one byte that no report fills */

/* ---- in the started program ---- */

/* Is refused so much, twice, which leaves no file open and errno alone. */
int oom_refused(uint64_t bytes);

/* Holds 350 MiB by two sites, a small piece, and stream-ordered memory with idle memory behind it:
 * six allocations. */
int oom_hold(void);

/* A role: holds that, and is refused 700 MiB. */
int oom_play_refused(void);

/* ---- in the test ---- */

extern struct program oom_program;
extern char oom_base[64], oom_folder[80], oom_variable[128]; /* of the folder of reports */
extern char oom_text[OOM_TEXT_BYTES];                        /* of the report that was read last */
extern json_t *oom_report;

int oom_set_up(void **state);
int oom_tear_down(void **state);

#define PLAY(_role, ...) program_play(&oom_program, _role, PROGRAM_LIST(oom_variable, __VA_ARGS__))

/* How many files a folder has. */
unsigned oom_files(const char *path);

/* The path of a report by its number, of whichever process; "" if there is none. */
const char *oom_path(unsigned number);

/* Reads a file. */
void oom_read(const char *path);

/* Reads report number `number`, and looks at what holds of all: file, schema, sums. */
void oom_load(unsigned number);

/* Plays a role, in a folder of its own, and reads the first report. */
void oom_play(const char *role, const char *first, const char *second);

/* A member of an object of the report, or with NULL of the report itself. */
json_int_t oom_number(const char *object, const char *key);
const char *oom_text_at(const char *object, const char *key);

bool oom_has_hint(const char *code);
size_t oom_frames(const json_t *place);

#endif
