/* SPDX-License-Identifier: MIT
 *
 * What the tests of the gate (shim/limit*.c) share: two devices, of which the first has a limit of
 * 1024 MiB, a driver of a few lines that never fails, and short words for the steps.
 */
#ifndef TESTS_UNIT_LIMIT_FIXTURE_H
#define TESTS_UNIT_LIMIT_FIXTURE_H

#include "unit.h"

#include "limit.h"

#include <stdatomic.h>

#define CONTEXT UINT64_C(0xc0)
#define OTHER   UINT64_C(0xc8)
#define STREAM  UINT64_C(0xd0)
#define POOL    UINT64_C(0xb0)
#define BASE    UINT64_C(0x7f0000000000)

extern uint64_t pool_bytes; /* what the pool holds */
extern uint64_t idle_bytes; /* of that, what a reclaim gives back */
extern atomic_uint reclaims, looks;

struct pool_reading pool_says(void);

int start(void **state);

/* Every test leaves nothing behind. */
int assert_nothing_held(void **state);

const struct region_totals *totals(unsigned device);

/* An allocation through the gate, and a free, at once or in stream order. */
bool take(enum gpulimit_kind kind, uint64_t owner, uint64_t address, uint64_t bytes);
void give(uint64_t address);
void free_later(uint64_t address);

/* Of the stream that free_later frees in. */
void synchronize(void);

#define GATE(_test) cmocka_unit_test_teardown(_test, assert_nothing_held)

#endif
