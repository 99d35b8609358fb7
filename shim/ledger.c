/* SPDX-License-Identifier: MIT
 *
 * Entries in one array, found by address through a table; the number of an entry is also its number
 * in the region, so that nothing needs to be looked up to mirror it.
 */
#include "ledger.h"

#include "clock.h"
#include "grow.h"

#include <string.h>
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
        .tag = entry->tag,
        .stream = entry->stream,
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

/* What an allocation counts for. */
static uint64_t ledger_held(const struct ledger *ledger, const struct ledger_entry *entry)
{
    return ledger->count_mode == GPULIMIT_COUNT_ALLOCATIONS ? entry->requested_bytes
                                                            : entry->committed_bytes;
}

static void ledger_count(struct ledger *ledger, struct ledger_entry *entry)
{
    uint64_t epoch = ledger->totals[entry->device].peak_epoch;
    entry->tally = tally_find(&ledger->tallies, entry->device, entry->site);
    tally_add(&ledger->tallies, entry->tally, ledger_held(ledger, entry), epoch);
    if (entry->tally != TALLY_NONE)
        region_put_tally(entry->tally, &ledger->tallies.list[entry->tally]);
}

static void ledger_discount(struct ledger *ledger, const struct ledger_entry *entry)
{
    uint64_t epoch = ledger->totals[entry->device].peak_epoch;
    tally_remove(&ledger->tallies, entry->tally, ledger_held(ledger, entry), epoch);
    if (entry->tally != TALLY_NONE)
        region_put_tally(entry->tally, &ledger->tallies.list[entry->tally]);
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
        ledger->now_mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
        ledger->has_time = true;
        ledger->entries[number].born_mono_ns = ledger->now_mono_ns;
        ledger->entries[number].thread_id = ledger_thread();
    }
    ledger_list(ledger, number);
    ledger_count(ledger, &ledger->entries[number]);
    struct region_totals *totals = &ledger->totals[entry->device];
    if (entry->requested_bytes > totals->largest_bytes)
        totals->largest_bytes = entry->requested_bytes;
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
    ledger_discount(ledger, entry);
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

static void ledger_note_peak(struct ledger *ledger, unsigned device, uint64_t now)
{
    struct region_totals *totals = &ledger->totals[device];
    totals->peak_bytes = totals->charged_bytes;
    totals->peak_mono_ns = now;
    totals->peak_epoch++;
    totals->peak_overhead_bytes =
        ledger->count_mode == GPULIMIT_COUNT_ALLOCATIONS ? 0 : totals->overhead_bytes;
}

static void ledger_draw(struct ledger *ledger, unsigned device, uint64_t now)
{
    const struct region_totals *totals = &ledger->totals[device];
    struct timeline *timeline = &ledger->timelines[device];
    uint32_t first =
        timeline_note(timeline, now, totals->charged_bytes, totals->limit_bytes, totals->denials);
    if (first < timeline->count)
        region_put_timeline(device, timeline, first);
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
    uint64_t now = ledger->now_mono_ns;
    if (!ledger->has_time)
        now = ledger->now_mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    ledger->has_time = false;
    if (totals->charged_bytes > totals->peak_bytes)
        ledger_note_peak(ledger, device, now);
    history_note_peak(&ledger->history, device, totals->charged_bytes);
    region_put_device(device, totals, kind);
    if (device < GPULIMIT_DEVICES)
        ledger_draw(ledger, device, now);
}

void ledger_note(struct ledger *ledger, enum gpulimit_event_what what,
                 const struct ledger_entry *entry)
{
    bool is_small = entry->requested_bytes < LEDGER_EVENT_BYTES;
    if (is_small && what != GPULIMIT_EVENT_REFUSED && what != GPULIMIT_EVENT_DRIVER_REFUSED)
        return;
    struct gpulimit_event event = {
        .mono_ns = ledger->now_mono_ns,
        .place = GPULIMIT_PLACE(entry->kind, entry->device, entry->api),
        .what = what,
        .thread_id = ledger_thread(),
        .site = entry->site,
        .tag = entry->tag,
        .bytes = entry->requested_bytes,
        .charged_bytes = ledger->totals[entry->device].charged_bytes,
        .address = entry->address,
    };
    history_add_event(&ledger->history, &event);
}

bool ledger_is_in_use(const struct ledger *ledger)
{
    bool is_in_use = false;
    for (unsigned device = 0; device < GPULIMIT_DEVICES; device++)
        is_in_use = is_in_use || ledger->timelines[device].count > 0;
    return is_in_use;
}

void ledger_mark(struct ledger *ledger, uint32_t text)
{
    for (unsigned device = 0; device < GPULIMIT_DEVICES; device++) {
        const struct region_totals *totals = &ledger->totals[device];
        struct gpulimit_mark mark = {
            .mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE),
            .text = text,
            .device = device,
            .charged_bytes = totals->charged_bytes,
            .requested_bytes = totals->requested_bytes,
            .allocations_total = totals->allocations_total,
            .live_allocations = (uint32_t)totals->live_allocations,
            .denials = (uint32_t)totals->denials,
        };
        if (ledger->timelines[device].count > 0)
            history_add_mark(&ledger->history, &mark);
    }
}

void ledger_clear(struct ledger *ledger)
{
    table_clear(&ledger->by_address);
    tally_clear(&ledger->tallies);
    grow_release((void **)&ledger->entries, &ledger->capacity, sizeof(struct ledger_entry));
    enum gpulimit_count_mode count_mode = ledger->count_mode;
    memset(ledger, 0, sizeof *ledger); /* too large for a second one on the stack */
    ledger->count_mode = count_mode;
    ledger_thread_id = 0;
}
