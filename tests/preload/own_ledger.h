/* SPDX-License-Identifier: MIT
 *
 * This process's own ledger, as the ledger's reader finds it, for roles of program.h.
 */
#ifndef TESTS_PRELOAD_OWN_LEDGER_H
#define TESTS_PRELOAD_OWN_LEDGER_H

#include "gpulimit/reader.h"

/* Returns it, to be closed by gpulimit_reader_close, or NULL if there is none. */
struct gpulimit_ledger *own_ledger(void);

/* The live allocation at an address; NULL if there is none. */
const struct gpulimit_ledger_entry *own_entry(const struct gpulimit_ledger *ledger,
                                              uint64_t address);

#endif
