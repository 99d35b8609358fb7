/* SPDX-License-Identifier: MIT
 *
 * How much each device may still give to this process. This is what enforces the limit: private
 * memory, one compare-exchange, no lock, no system call. It knows nothing of CUDA, entries or
 * messages.
 *
 * Bytes are taken before the driver is asked and given back after it has freed, so that at no
 * moment the driver holds more than the budget says. Any thread, any time; a fork's child calls
 * budget_reset.
 */
#ifndef SHIM_BUDGET_H
#define SHIM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { BUDGET_DEVICES = 64 };

/* Sets a device's limit in bytes; GPULIMIT_NO_LIMIT for none. What is used stays used. */
void budget_set_limit(unsigned device, uint64_t bytes);

uint64_t budget_limit(unsigned device);

/* Bytes taken and not given back, reservations under way included. */
uint64_t budget_used(unsigned device);

/* Takes bytes if they fit. Returns false, having taken nothing, if used + bytes would exceed the
 * limit; never wraps, whatever the size. Without a limit it always succeeds: the driver decides. */
bool budget_take(unsigned device, uint64_t bytes);

/* Gives back bytes that were taken. */
void budget_give(unsigned device, uint64_t bytes);

/* Changes what is used by what the driver turned out to hold, limit or not: the budget never shows
 * less than the device. */
void budget_adjust(unsigned device, int64_t bytes);

/* The grace of a device: the right to do, with the budget full, what needs the device to hold
 * still: to ask the driver for something that is expected to cost nothing new (if it does cost, the
 * caller undoes it), or to have it give back what is idle. One thread at a time, so that the device
 * is at no moment over its limit by more than one such guess. Waits for its turn, but not for ever:
 * returns false if others had it for all of 200 ms. */
bool budget_take_grace(unsigned device);
void budget_give_grace(unsigned device);

/* The holder of the grace uses it to ask the driver for something, until it gives the grace back:
 * for as long the device may hold a little more than the budget says. */
void budget_guess(unsigned device);

/* Counts the beginnings and ends of that: odd while somebody does. If it is even, and the same
 * later, nobody did meanwhile. */
uint64_t budget_guesses(unsigned device);

/* Nothing used, no grace held, limits as they were. For a fork's child, which has no other thread.
 */
void budget_reset(void);

#endif
