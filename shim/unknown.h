/* SPDX-License-Identifier: MIT
 *
 * Functions of a driver newer than this library: handed out to the program, in neither hooks.def
 * nor passthrough.def, and by their names about device memory (memory_names.def). The limit may not
 * see what they take, so people are told: in the ledger, for gpulimit-stat doctor, and in the log.
 *
 * Only look-ups are seen. A program linked with such a function reaches it unseen.
 *
 * Any thread, also inside dlsym and before constructors: no lock, no malloc, and like hooks.c
 * compiled without sanitizers. No cuda.h.
 */
#ifndef SHIM_UNKNOWN_H
#define SHIM_UNKNOWN_H

#include "gpulimit/region.h"

#include <stdbool.h>

bool unknown_is_memory_looking(const char *name);

/* Whether a name is a row of either table. */
bool unknown_is_known(const char *name);

/* Whether a name that dlsym was asked for is worth a closer look: it looks like memory and is in no
 * table. NULL is accepted. Names that do not begin as the driver's do cost three comparisons. */
bool unknown_is_new(const char *name);

/* The driver handed out a function of that name which is no hook. */
void unknown_note(const char *name);

/* The driver answered cuGetProcAddress, and the answer is no hook. Notes a new name, and a known
 * one whose variants all have hooks: then this is a variant that came later, and is noted as
 * "name@version". */
void unknown_note_answer(const char *name, int version);

/* Once a process: enters the names noted so far in a ledger's header, and calls tell for each that
 * has not been told yet; from now on the same for every new name at once. Either may be NULL. Both
 * must stay until the next call. */
void unknown_attach(struct gpulimit_header *header, void (*tell)(const char *name));

#endif
