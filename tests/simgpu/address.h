/* SPDX-License-Identifier: MIT
 *
 * The process's device addresses. They lie above what a host address can be, so that the two are
 * never mixed up; those for the CUDA 2.x interface below 4 GiB. Called under the driver's lock.
 */
#ifndef SIMGPU_ADDRESS_H
#define SIMGPU_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Both take multiples of 2 MiB, aligned to 2 MiB at least.
 *   0: no address space left. */
uint64_t address_take(uint64_t size, uint64_t alignment);
uint64_t address_take_low(uint64_t size);
bool address_take_at(uint64_t start, uint64_t size);
void address_give(uint64_t start, uint64_t size);
bool address_is_low(uint64_t start);

#endif
