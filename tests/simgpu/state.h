/* SPDX-License-Identifier: MIT
 *
 * The file that all simulated processes share: how many bytes each of them holds on each device,
 * and how many of them NVML leaves out of its figure for the process.
 *
 *      0  +--------------------------+
 *         | magic                    |
 *     64  +--------------------------+
 *         | struct state_slot[256]   |  one a process
 *         +--------------------------+
 *
 * A process writes its own slot and no other, one field at a time, so that a kill at any
 * instruction leaves nothing half done. It holds an open-file-description lock on a byte of its own
 * (not its slot's bytes: byte 1 + slot) for life; the kernel drops that when the process is gone,
 * and from then on the slot counts as free. Byte 0 is locked by whoever wants more memory, so that
 * two processes cannot both take the last of it.
 *
 * Not thread-safe: libcuda calls it under its own lock, libnvidia-ml under its own. A child made by
 * fork has nothing open and no slot.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens and maps the file, creating it if need be. Does nothing when it is open already.
 *   false: it cannot be had; errno says why. */
bool state_open(void);

/* Takes a slot for this process.
 *   false: more processes than slots. */
bool state_claim(void);

/* Adds bytes to what this process holds on the device.
 *   false: all processes together would hold more than total_bytes. */
bool state_grow(unsigned device, uint64_t bytes, uint64_t total_bytes);
void state_shrink(unsigned device, uint64_t bytes);

/* Of what this process holds, so many bytes more, or fewer, are in the device's figure alone. */
void state_hide(unsigned device, int64_t change);

/* Counts this process's contexts on the device: NVML lists a process only while it has one. */
void state_count_contexts(unsigned device, int change);

uint64_t state_own_bytes(unsigned device);
uint64_t state_take_peak(unsigned device);  /* the most of that since it was last taken */
uint64_t state_used_bytes(unsigned device); /* all processes */

struct state_process {
    pid_t pid;
    uint64_t used_bytes; /* less what is hidden */
};

/* The living processes that have a context on the device: writes at most `most`, returns how many
 * there are. */
unsigned state_list(unsigned device, struct state_process *processes, unsigned most);

#endif
