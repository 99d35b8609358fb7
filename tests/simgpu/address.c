// SPDX-License-Identifier: MIT
//
// Device addresses; see address.h.

#include "address.h"

#include "arena.h"
#include "driver.h"

#define ADDRESS_LOW_START  (256 * DRIVER_MIB)
#define ADDRESS_LOW_END    (3840 * DRIVER_MIB)
#define ADDRESS_HIGH_START ((uint64_t)1 << 48)
#define ADDRESS_HIGH_END   ((uint64_t)1 << 56)

static struct arena low, high;
static bool ready;

static void address_prepare(void)
{
    if (!ready)
        ready = arena_give(&low, ADDRESS_LOW_START, ADDRESS_LOW_END - ADDRESS_LOW_START) &&
                arena_give(&high, ADDRESS_HIGH_START, ADDRESS_HIGH_END - ADDRESS_HIGH_START);
}

uint64_t address_take(uint64_t size, uint64_t alignment)
{
    address_prepare();
    return arena_take(&high, size, alignment > DRIVER_BLOCK ? alignment : DRIVER_BLOCK);
}

uint64_t address_take_low(uint64_t size)
{
    address_prepare();
    return arena_take(&low, size, DRIVER_BLOCK);
}

bool address_take_at(uint64_t start, uint64_t size)
{
    address_prepare();
    return arena_take_at(&high, start, size);
}

void address_give(uint64_t start, uint64_t size)
{
    arena_give(address_is_low(start) ? &low : &high, start, size);
}

bool address_is_low(uint64_t start)
{
    return start < ADDRESS_LOW_END;
}
