/* SPDX-License-Identifier: MIT
 *
 * The questions behind truth.h: NVML's figures, by a device's UUID, never by an index, since CUDA
 * and NVML number devices differently; and the turn that processes take at a card. See truth.h for
 * threads and forks.
 */
#ifndef SHIM_TRUTH_CARD_H
#define SHIM_TRUTH_CARD_H

#include <stdbool.h>
#include <stdint.h>

/* What the driver holds on a device for this process. Returns false if NVML does not list the
 * process, or cannot be had. */
bool truth_card_process(unsigned device, uint64_t *bytes);

/* What of the card is in use, by anybody, up to a constant: only differences mean something. It is
 * NVML's figure, else the driver's, which needs the current context to be on the device. */
bool truth_card_used(unsigned device, uint64_t *bytes);

/* What the card has free, where NVML has been asked about it before: it is not loaded for this.
 * Returns false if that cannot be told. */
bool truth_card_free(unsigned device, uint64_t *free_bytes);

/* Waits until no other process that asks as well is at a card, but not for ever. Returns the turn,
 * or -1: without one it goes on all the same. */
int truth_card_take_turn(unsigned device);
void truth_card_give_turn(int turn);

/* In a fork's child: nobody waits here. */
void truth_card_forget(void);

#endif
