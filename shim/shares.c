/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of shares.h.
 */
#include "shares.h"

#define SHARES_BLOCK (UINT64_C(2) << 20)

static uint64_t shares_round_up(uint64_t bytes)
{
    return (bytes + SHARES_BLOCK - 1) / SHARES_BLOCK * SHARES_BLOCK;
}

/* An equal part of a block: as many as fit of its like fill one. */
static uint64_t shares_part(uint64_t bytes)
{
    if (bytes >= SHARES_BLOCK)
        return shares_round_up(bytes);
    return SHARES_BLOCK / (SHARES_BLOCK / bytes);
}

uint64_t shares_add(struct shares *shares, uint64_t bytes)
{
    uint64_t before = shares_round_up(shares->bytes);
    shares->bytes += shares_part(bytes);
    return shares_round_up(shares->bytes) - before;
}

uint64_t shares_remove(struct shares *shares, uint64_t bytes)
{
    uint64_t before = shares_round_up(shares->bytes);
    shares->bytes -= shares_part(bytes);
    return before - shares_round_up(shares->bytes);
}

bool shares_fit(const struct shares *shares, uint64_t bytes)
{
    return shares_round_up(shares->bytes) - shares->bytes >= shares_part(bytes);
}
