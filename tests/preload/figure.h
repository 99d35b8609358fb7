/* SPDX-License-Identifier: MIT
 *
 * What the device really holds for a process under the library, by NVML's own figure for it, which
 * the library does not touch; and whether the ledger and cuMemGetInfo say the same.
 *
 * NVML is loaded by the first question, not before: whether the library loads it is for tests to
 * see.
 */
#ifndef TESTS_PRELOAD_FIGURE_H
#define TESTS_PRELOAD_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

/* NVML's figure for this process on a device of CUDA's: 0 if it is not listed there. */
uint64_t figure_of(int device);

/* Whether a device holds so many bytes for the process, no more than its limit, and the ledger
 * knows of all of them: nothing untracked. If not, it says so on stderr. Asks the library nothing.
 */
bool figure_is(int device, uint64_t bytes);

/* The same, by the simulator's own figure, for where NVML does not list the process. */
bool figure_is_unlisted(int device, uint64_t bytes);

/* Whether the program is loading, or has loaded, NVML. */
bool figure_has_nvml(void);

#endif
