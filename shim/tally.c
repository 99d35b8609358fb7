/* SPDX-License-Identifier: MIT
 *
 * The counting of tally.h.
 */
#include "tally.h"

#include "grow.h"

/* Makes the tally of a place that has none. */
static uint32_t tally_make(struct tallies *tallies, uint64_t key, unsigned device, uint32_t site)
{
    if (tallies->count >= TALLY_MOST)
        return TALLY_NONE;
    uint32_t number = tallies->count + 1;
    if (number >= tallies->capacity &&
        !grow_array((void **)&tallies->list, &tallies->capacity, sizeof *tallies->list))
        return TALLY_NONE;
    if (!table_set(&tallies->by_place, key, number))
        return TALLY_NONE;
    tallies->list[number] = (struct tally){.device = device, .site = site};
    tallies->count = number;
    return number;
}

uint32_t tally_find(struct tallies *tallies, unsigned device, uint32_t site)
{
    uint64_t key = ((uint64_t)site << 8 | device) + 1; /* never 0 */
    if (key == tallies->last_key)                      /* allocations come in rows */
        return tallies->last_number;
    const uint64_t *known = table_find(&tallies->by_place, key);
    uint32_t number = known ? (uint32_t)*known : tally_make(tallies, key, device, site);
    if (number != TALLY_NONE) {
        tallies->last_key = key;
        tallies->last_number = number;
    }
    return number;
}

/* The first change after a peak. */
static void tally_keep_peak(struct tally *tally, uint64_t epoch)
{
    if (tally->peak_epoch == epoch)
        return;
    tally->peak_epoch = epoch;
    tally->peak_bytes = tally->bytes;
    tally->peak_count = tally_live(tally);
}

void tally_add(struct tallies *tallies, uint32_t number, uint64_t bytes, uint64_t epoch)
{
    if (number == TALLY_NONE)
        return;
    struct tally *tally = &tallies->list[number];
    tally_keep_peak(tally, epoch);
    tally->bytes += bytes;
    tally->allocations_total++;
}

void tally_remove(struct tallies *tallies, uint32_t number, uint64_t bytes, uint64_t epoch)
{
    if (number == TALLY_NONE)
        return;
    struct tally *tally = &tallies->list[number];
    tally_keep_peak(tally, epoch);
    tally->bytes -= bytes;
    tally->frees_total++;
}

uint64_t tally_peak_bytes(const struct tally *tally, uint64_t epoch)
{
    return tally->peak_epoch == epoch ? tally->peak_bytes : tally->bytes;
}

uint64_t tally_peak_count(const struct tally *tally, uint64_t epoch)
{
    return tally->peak_epoch == epoch ? tally->peak_count : tally_live(tally);
}

void tally_clear(struct tallies *tallies)
{
    table_clear(&tallies->by_place);
    grow_release((void **)&tallies->list, &tallies->capacity, sizeof *tallies->list);
    *tallies = (struct tallies){0};
}
