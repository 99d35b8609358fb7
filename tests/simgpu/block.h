/* SPDX-License-Identifier: MIT
 *
 * The block rule: requests below 2 MiB share blocks of 2 MiB, first fit, 512 bytes apart; larger
 * ones are rounded up to whole blocks. A list is what its members share blocks with: a context has
 * one for linear memory, one for that below 4 GiB, one for arrays. Called under the driver's lock.
 */
#ifndef SIMGPU_BLOCK_H
#define SIMGPU_BLOCK_H

#include "driver.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct block;

struct block_list {
    TAILQ_HEAD(, block) blocks;
    unsigned gpu;
    bool is_low; /* below 4 GiB */
};

void block_start(struct block_list *list, unsigned gpu, bool low);

/* Tells the shared block as well, NULL if the request has blocks of its own.
 *   0: the device is full, or there are no addresses. */
uint64_t block_take(struct block_list *list, uint64_t bytes, struct block **block);
void block_give(struct block_list *list, struct block *block, uint64_t start, uint64_t bytes);

#endif
