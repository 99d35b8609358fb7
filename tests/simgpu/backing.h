/* SPDX-License-Identifier: MIT
 *
 * Device memory as such: bytes of a gpu, taken and given back. The one place that knows when a
 * device is full, and what the driver does about it. Called under the driver's lock.
 */
#ifndef SIMGPU_BACKING_H
#define SIMGPU_BACKING_H

#include <stdbool.h>
#include <stdint.h>

/* false: the device has no room for them, not even when pools and graphs give up what they hold
 * idle. */
bool backing_take(unsigned gpu, uint64_t bytes);
bool backing_take_once(unsigned gpu, uint64_t bytes); /* without asking them */
void backing_reclaim(unsigned gpu);                   /* asks them */
void backing_give(unsigned gpu, uint64_t bytes);

/* So many bytes more, or fewer, of what was taken are in no process's figure, only in the card's.
 * Tell before they are given back. */
void backing_hide(unsigned gpu, int64_t change);

uint64_t backing_free_bytes(unsigned gpu); /* of the device, for all processes */

#endif
