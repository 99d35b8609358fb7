/* SPDX-License-Identifier: MIT
 *
 * What arrays really take: the driver puts small ones together into blocks of 2 MiB, among
 * themselves, and says of each what it requires. So each is counted with the part of a block that
 * it takes when the block is full of its like, and all together are rounded up to whole blocks.
 * Measured on an H200: 1, 2, 3, 4 and 8 arrays of 1 MiB take 2, 2, 4, 4 and 8 MiB; very small ones
 * take less than they require.
 *
 * No locking: the caller has a lock. A zero-initialised struct shares is empty and valid.
 */
#ifndef SHIM_SHARES_H
#define SHIM_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct shares {
    uint64_t bytes; /* of all of them, each as its part of a block */
};

/* One more, or one less, of bytes > 0. Returns the bytes of whole blocks by which the device's
 * figure changes. */
uint64_t shares_add(struct shares *shares, uint64_t bytes);
uint64_t shares_remove(struct shares *shares, uint64_t bytes);

/* Whether one more fits into the blocks that there are. */
bool shares_fit(const struct shares *shares, uint64_t bytes);

#endif
