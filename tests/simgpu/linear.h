/* SPDX-License-Identifier: MIT
 *
 * Memory of cuMemAlloc, cuMemAllocPitch and cuMemAllocManaged: the first two by the block rule
 * (block.h); managed memory costs nothing until the device touches it, and then only the card, not
 * the process by NVML's figure. Also host memory, which dies with its context as well. Called under
 * the driver's lock.
 */
#ifndef SIMGPU_LINEAR_H
#define SIMGPU_LINEAR_H

#include "context.h"
#include "memory.h"

/* low: below 4 GiB.
 *   NULL: the device is full, or the size absurd. */
struct memory *linear_allocate(CUcontext context, uint64_t bytes, bool low);
struct memory *linear_allocate_managed(CUcontext context, uint64_t bytes);
struct memory *linear_allocate_host(CUcontext context, uint64_t bytes);

/* The device touches the first `bytes` of managed memory, which come to it if they fit: what does
 * not stays on the host. */
void linear_touch(struct memory *memory, uint64_t bytes);

void linear_free(struct memory *memory);

/* In stream order: unknown at once, but the device has it back only when the stream is
 * synchronised. */
void linear_free_later(struct memory *memory, CUstream stream);
void linear_settle(CUstream stream);

void linear_free_context(CUcontext context); /* all of the three kinds that it owns */

#endif
