/* SPDX-License-Identifier: MIT
 *
 * NVML's own figure for a process: what the driver holds for it on one GPU, as nvidia-smi shows it.
 * The library is looked for at the first question and then kept. Where there is none, or it does
 * not answer, nobody knows the figure; that is no failure. Not thread-safe.
 */
#ifndef GPULIMIT_TOOLS_NVML_H
#define GPULIMIT_TOOLS_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* `pid` is a number of our own pid namespace. True, and *bytes is set, if NVML lists it on that
 * GPU: it does so only while the process has a context there, and only where NVML numbers processes
 * as we do. */
bool nvml_get_process_bytes(const char *gpu_uuid, int32_t pid, uint64_t *bytes);

#endif
