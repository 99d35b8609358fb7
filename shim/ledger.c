/* SPDX-License-Identifier: MIT
 *
 * Entries in one array, found by address through a table; the number of an entry is also its number
 * in the region, so that nothing needs to be looked up to mirror it.
 */
#include "ledger.h"

#include "clock.h"
#include "grow.h"

#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local uint32_t ledger_thread_id __attribute__((tls_model("initial-exec")));

/* gettid() is a system call: asked once per thread. A fork's child has another one, see
 * ledger_clear. */
static uint32_t ledger_thread(void)
{
    if (ledger_thread_id == 0)
        ledger_thread_id = (uint32_t)syscall(SYS_gettid);
    return ledger_thread_id;
}

static uint32_t ledger_take_place(struct ledger *ledger)
{
    if (ledger->free_list) {
        uint32_t number = ledger->free_list - 1;
        ledger->free_list = ledger->entries[number].next;
        return number;
    }
    if (ledger->used == ledger->capacity &&
        !grow_array((void **)&ledger->entries, &ledger->capacity, sizeof(struct ledger_entry)))
        return LEDGER_NONE;
    return ledger->used++;
}

static void ledger_free_place(struct ledger *ledger, uint32_t number)
{
    ledger->entries[number].kind = GPULIMIT_KIND_NONE;
    ledger->entries[number].next = ledger->free_list;
    ledger->free_list = number + 1;
}

static void ledger_list(struct ledger *ledger, uint32_t number)
{
    struct ledger_entry *entry = &ledger->entries[number];
    struct gpulimit_entry record = {
        .place = GPULIMIT_PLACE(entry->kind, entry->device, entry->api),
        .address = entry->address,
        .requested_bytes = entry->requested_bytes,
        .committed_bytes = entry->committed_bytes,
        .born_mono_ns = entry->born_mono_ns,
        .thread_id = entry->thread_id,
        .site = entry->site,
        .owner = entry->owner,
    };
    entry->is_listed = region_put_entry(number, &record);
    if (!entry->is_listed)
        region_put_unlisted(++ledger->unlisted);
}

static void ledger_unlist(struct ledger *ledger, uint32_t number)
{
    if (ledger->entries[number].is_listed)
        region_drop_entry(number);
    else
        region_put_unlisted(--ledger->unlisted);
}

uint32_t ledger_insert(struct ledger *ledger, const struct ledger_entry *entry, uint32_t *stale)
{
    *stale = LEDGER_NONE;
    uint32_t number = ledger_take_place(ledger);
    if (number == LEDGER_NONE)
        return LEDGER_NONE;
    if (!entry->is_handle) {
        uint32_t old = ledger_find(ledger, entry->address);
        if (!table_set(&ledger->by_address, entry->address, number)) {
            ledger_free_place(ledger, number);
            return LEDGER_NONE;
        }
        *stale = old;
    }
    ledger->entries[number] = *entry;
    ledger->entries[number].serial = ++ledger->serial;
    if (entry->born_mono_ns == 0) {
        ledger->entries[number].born_mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
        ledger->entries[number].thread_id = ledger_thread();
    }
    ledger_list(ledger, number);
    struct region_totals *totals = &ledger->totals[entry->device];
    totals->requested_bytes += entry->requested_bytes;
    totals->allocations_total++;
    totals->by_kind[entry->kind].count++;
    if (ledger->count_mode == GPULIMIT_COUNT_ALLOCATIONS)
        totals->by_kind[entry->kind].bytes += entry->requested_bytes;
    return number;
}

struct ledger_entry *ledger_at(struct ledger *ledger, uint32_t number)
{
    return &ledger->entries[number];
}

uint32_t ledger_find(const struct ledger *ledger, uint64_t address)
{
    const uint64_t *number = table_find(&ledger->by_address, address);
    return number ? (uint32_t)*number : LEDGER_NONE;
}

void ledger_remove(struct ledger *ledger, uint32_t number)
{
    const struct ledger_entry *entry = &ledger->entries[number];
    struct region_totals *totals = &ledger->totals[entry->device];
    totals->requested_bytes -= entry->requested_bytes;
    totals->frees_total++;
    totals->by_kind[entry->kind].count--;
    /* Unless a newer entry has the address, see ledger_insert. */
    if (!entry->is_handle && ledger_find(ledger, entry->address) == number)
        table_remove(&ledger->by_address, entry->address);
    if (ledger->count_mode == GPULIMIT_COUNT_ALLOCATIONS)
        totals->by_kind[entry->kind].bytes -= entry->requested_bytes;
    ledger_unlist(ledger, number);
    ledger_free_place(ledger, number);
}

void ledger_commit(struct ledger *ledger, unsigned device, enum gpulimit_kind kind, int64_t bytes)
{
    struct region_totals *totals = &ledger->totals[device];
    struct ledger_flow *flow = &ledger->flow[device];
    totals->committed_bytes += (uint64_t)bytes;
    *(bytes > 0 ? &flow->grown_bytes : &flow->shrunk_bytes) +=
        (uint64_t)(bytes > 0 ? bytes : -bytes);
    if (ledger->count_mode == GPULIMIT_COUNT_PROCESS)
        totals->by_kind[kind].bytes += (uint64_t)bytes;
}

void ledger_publish(struct ledger *ledger, unsigned device, enum gpulimit_kind kind)
{
    struct region_totals *totals = &ledger->totals[device];
    totals->live_allocations = totals->allocations_total - totals->frees_total;
    totals->charged_bytes = ledger->count_mode == GPULIMIT_COUNT_ALLOCATIONS
                                ? totals->requested_bytes
                                : totals->committed_bytes + totals->overhead_bytes;
    totals->hidden_bytes =
        ledger->hidden_bytes[device] + totals->by_kind[GPULIMIT_KIND_MANAGED].bytes;
    if (totals->charged_bytes > totals->peak_bytes)
        totals->peak_bytes = totals->charged_bytes;
    region_put_device(device, totals, kind);
}

void ledger_clear(struct ledger *ledger)
{
    table_clear(&ledger->by_address);
    grow_release((void **)&ledger->entries, &ledger->capacity, sizeof(struct ledger_entry));
    *ledger = (struct ledger){.count_mode = ledger->count_mode};
    ledger_thread_id = 0;
}
