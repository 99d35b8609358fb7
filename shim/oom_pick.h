/* SPDX-License-Identifier: MIT
 *
 * Which refusals get a report: the first of a process, the largest and the latest, as the numbers
 * 1, 2 and 3. The first is written once; the others are written again when there is a larger or a
 * later one, each at most once in 10 s: a program that tries again and again stays cheap. What was
 * too early for both has no report.
 *
 * No clock and no lock: the caller has both. A zero-initialised struct oom_pick has picked none.
 */
#ifndef SHIM_OOM_PICK_H
#define SHIM_OOM_PICK_H

#include <stdbool.h>
#include <stdint.h>

enum oom_number { OOM_NONE, OOM_FIRST, OOM_LARGEST, OOM_LATEST };

struct oom_pick {
    bool has_first;
    uint64_t largest_bytes; /* of those that the first and the largest report are about */
    uint64_t due_mono_ns[OOM_LATEST + 1]; /* from when on a report may be written again */
};

/* The report that a refusal of so many bytes gets at a moment of CLOCK_MONOTONIC; OOM_NONE: none.
 */
enum oom_number oom_pick_take(struct oom_pick *pick, uint64_t bytes, uint64_t mono_ns);

#endif
