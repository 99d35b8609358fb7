/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that counts overhead, see limit_overhead.h.
 */
#include "limit_overhead.h"

#include "clock.h"
#include "guard.h"
#include "limit_books.h"
#include "limit_pools.h"
#include "tell.h"

bool limit_counts_overhead(void)
{
    return !limit_counts_requests();
}

/* The most that a request takes for a moment that was to fit into what is there: a pool's chunk. */
#define LIMIT_GUESS_BYTES (UINT64_C(32) << 20)

uint64_t limit_overhead(unsigned device)
{
    uint64_t bytes = books_lock()->ledger.totals[device].overhead_bytes;
    books_unlock();
    return bytes;
}

void limit_set_overhead(struct books *books, unsigned device)
{
    const struct overhead *overhead = &books->overhead[device];
    struct region_totals *totals = &books->ledger.totals[device];
    uint64_t bytes = overhead->measured_bytes + overhead->promised_bytes;
    int64_t change = (int64_t)(bytes - totals->overhead_bytes);
    totals->overhead_bytes = bytes;
    books->ledger.hidden_bytes[device] = overhead->hidden_bytes + overhead->promised_bytes;
    if (limit_counts_overhead())
        budget_adjust(device, change);
    ledger_publish(&books->ledger, device, GPULIMIT_KIND_NONE);
}

static uint64_t limit_committed(const struct books *books, uint32_t entry)
{
    return books->ledger.entries[entry].committed_bytes;
}

/* What allocations hold on a device that the driver's figure for the process does not show, managed
 * ones apart: pools of managed memory, memory that only an exported descriptor or an array keeps
 * (measured, driver 580.159). */
static uint64_t limit_hidden(const struct books *books, unsigned device)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < books->pools.used; i++) {
        const struct pool *pool = &books->pools.places[i];
        if (pool->in_use && pool->is_managed && pool->device == (int)device)
            bytes += pool->reserved_bytes;
    }
    /* What somebody here has imported is not hidden, and which of it that is nobody knows. */
    for (uint32_t i = 0; books->imports == 0 && i < books->exports.count; i++) {
        const struct export *kept = &books->exports.kept[i];
        if (kept->descriptor >= 0 && books->ledger.entries[kept->entry].device == device)
            bytes += limit_committed(books, kept->entry);
    }
    for (uint32_t i = 0; books->tiles.piece_count > 0 && i < books->mappings.objects_used; i++) {
        const struct mappings_object *object = &books->mappings.objects[i];
        if (object->handles == 0 && object->maps > 0 && object->maps == object->holds &&
            books->ledger.entries[object->entry].device == device)
            bytes += limit_committed(books, object->entry);
    }
    return bytes;
}

static uint64_t limit_less(uint64_t bytes, uint64_t other)
{
    return bytes > other ? bytes - other : 0;
}

static void limit_look(struct books *books, struct limit_look *look)
{
    const struct region_totals *totals = &books->ledger.totals[look->device];
    struct overhead *overhead = &books->overhead[look->device];
    overhead->hidden_bytes = limit_hidden(books, look->device);
    uint64_t hidden = overhead->hidden_bytes + totals->by_kind[GPULIMIT_KIND_MANAGED].bytes;
    look->flow = books->ledger.flow[look->device];
    look->guesses = budget_guesses(look->device);
    look->least_bytes = limit_less(totals->committed_bytes, hidden);
    /* What the budget has taken and the books do not have is under way. */
    look->most_bytes = limit_less(budget_used(look->device), totals->overhead_bytes + hidden);
    look->overhead_bytes = totals->overhead_bytes;
    look->is_vague = overhead->is_vague;
}

/* Widens the bounds to what holds at any moment between two looks: no more than at either end and
 * what came meanwhile, no less than at either end without what went. */
static void limit_widen(struct limit_look *look, const struct limit_look *now)
{
    if (now->most_bytes > look->most_bytes)
        look->most_bytes = now->most_bytes;
    look->most_bytes += now->flow.grown_bytes - look->flow.grown_bytes;
    if (now->least_bytes < look->least_bytes)
        look->least_bytes = now->least_bytes;
    look->least_bytes =
        limit_less(look->least_bytes, now->flow.shrunk_bytes - look->flow.shrunk_bytes);
    look->flow = now->flow;
}

void limit_look_begin(struct limit_look *look, unsigned device)
{
    look->device = device;
    look->is_seen = false;
    struct books *books = books_lock();
    look->number = ++books->looks;
    limit_look(books, look);
    books_unlock();
}

/* Lowers what was measured to what a figure leaves it at most. A pool that another thread has
 * trimmed, memory that its synchronisation has brought back: between the driver's doing it and the
 * books' hearing of it, a figure leaves too little, and what is taken from the overhead then is
 * allocated beyond the limit. So with threads it has to stay so for a while, unless the caller has
 * done something that lowers it. */
static void limit_lower(struct overhead *overhead, uint64_t most_bytes, bool is_expected)
{
    enum { STAYS_NS = 20000000 };
    if (overhead->measured_bytes <= most_bytes) {
        overhead->low_mono_ns = 0;
        return;
    }
    if (!is_expected && limit_is_threaded()) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
        if (overhead->low_mono_ns == 0 || most_bytes > overhead->low_bytes)
            overhead->low_bytes = most_bytes;
        if (overhead->low_mono_ns == 0)
            overhead->low_mono_ns = now;
        if (now - overhead->low_mono_ns < STAYS_NS)
            return;
        most_bytes = overhead->low_bytes;
    }
    overhead->measured_bytes = most_bytes;
    overhead->low_mono_ns = 0;
}

/* Moves what was measured into the bounds that a figure leaves it. */
static void limit_fit(struct overhead *overhead, uint64_t least_bytes, uint64_t most_bytes,
                      bool is_late)
{
    if (overhead->measured_bytes < least_bytes)
        overhead->measured_bytes = least_bytes;
    limit_lower(overhead, most_bytes, !is_late);
}

bool limit_look_end(const struct limit_look *look, const struct ticket *mine, uint64_t figure_bytes,
                    bool is_late)
{
    struct limit_look now = {.device = look->device};
    struct books *books = books_lock();
    struct overhead *overhead = &books->overhead[look->device];
    bool is_latest = look->number > overhead->looked;
    if (is_latest) {
        overhead->looked = look->number;
        books->ledger.totals[look->device].truth_source = GPULIMIT_TRUTH_NVML;
        limit_look(books, &now);
        struct limit_look seen = *look;
        limit_widen(&seen, &now);
        uint64_t most = seen.most_bytes, least = seen.least_bytes;
        if (look->guesses % 2 != 0 || look->guesses != now.guesses)
            most += LIMIT_GUESS_BYTES;
        if (mine)
            most = limit_less(most, mine->held_bytes);
        overhead->is_vague = least != most;
        uint64_t before = overhead->measured_bytes;
        limit_fit(overhead, limit_less(figure_bytes, most), limit_less(figure_bytes, least),
                  is_late);
        if (is_late)
            limit_take_promises(books, look->device, limit_less(overhead->measured_bytes, before));
        limit_set_overhead(books, look->device);
    }
    books_unlock();
    return is_latest;
}

void limit_look_seen(struct limit_look *look, const struct ticket *mine)
{
    struct limit_look now = {.device = look->device};
    struct books *books = books_lock();
    limit_look(books, &now);
    books_unlock();
    limit_widen(look, &now);
    look->most_bytes = limit_less(look->most_bytes, mine->held_bytes);
    look->is_seen = true;
}

static void limit_move(unsigned device, int64_t change)
{
    struct books *books = books_lock();
    struct overhead *overhead = &books->overhead[device];
    books->ledger.totals[device].truth_source = GPULIMIT_TRUTH_DELTA;
    overhead->hidden_bytes = limit_hidden(books, device);
    if (change < 0)
        overhead->measured_bytes = limit_less(overhead->measured_bytes, (uint64_t)-change);
    else
        overhead->measured_bytes += (uint64_t)change;
    limit_set_overhead(books, device);
    books_unlock();
}

int64_t limit_look_moved(const struct limit_look *before, const struct limit_look *after,
                         int64_t card_bytes, int64_t expected_bytes)
{
    int64_t least = card_bytes - (int64_t)(after->most_bytes - before->least_bytes);
    int64_t most = card_bytes - (int64_t)(after->least_bytes - before->most_bytes);
    /* Unless it is known better, what is under way is as much before as after. */
    int64_t change = card_bytes - (int64_t)(after->flow.grown_bytes - before->flow.grown_bytes) +
                     (int64_t)(after->flow.shrunk_bytes - before->flow.shrunk_bytes);
    if (expected_bytes != 0)
        change = expected_bytes;
    if (change < least)
        change = least;
    if (change > most)
        change = most;
    limit_move(before->device, change);
    return change;
}

void limit_look_guessed(unsigned device, int64_t bytes)
{
    limit_move(device, bytes);
}

void limit_look_empty(unsigned device)
{
    struct books *books = books_lock();
    books->overhead[device].measured_bytes = 0;
    limit_set_overhead(books, device);
    books_unlock();
}

bool limit_is_over(unsigned device)
{
    uint64_t limit = budget_limit(device);
    return limit != GPULIMIT_NO_LIMIT && budget_used(device) > limit;
}

bool limit_reserve_overhead(struct ticket *ticket, enum limit_what what, unsigned device,
                            enum api api, uint64_t bytes)
{
    *ticket = (struct ticket){.api = guard_name(api), .what = what, .device = device};
    if (!limit_counts_overhead())
        return true;
    if (bytes > 0) {
        ticket->bytes = bytes;
        return limit_reserve_ticket(ticket);
    }
    /* Where nothing is allowed, not even for as long as it takes to find out how much it is. */
    bool is_barred = budget_limit(device) == 0;
    if (!is_barred && !limit_is_over(device))
        return true;
    start_driver()->reclaim(device); /* which looks, too */
    if (!is_barred && !limit_is_over(device))
        return true;
    limit_give_up(ticket);
    return false;
}

void limit_take_overhead(struct ticket *ticket)
{
    struct books *books = books_lock();
    struct overhead *overhead = &books->overhead[ticket->device];
    overhead->measured_bytes += ticket->held_bytes;
    overhead->is_vague |= ticket->held_bytes > 0;
    overhead->looked = ++books->looks; /* a figure that was asked for earlier is without it */
    limit_set_overhead(books, ticket->device);
    budget_give(ticket->device, ticket->held_bytes);
    ticket->held_bytes = 0;
    books_unlock();
}

/* Whether nothing else happened on a device between two looks, so that what grew did so by the one
 * call. */
static bool limit_was_alone(const struct limit_look *before, uint64_t reserved_bytes,
                            const struct limit_look *now)
{
    return !before->is_vague && !now->is_vague &&
           before->most_bytes == before->least_bytes + reserved_bytes &&
           now->most_bytes == now->least_bytes &&
           before->flow.grown_bytes == now->flow.grown_bytes &&
           before->flow.shrunk_bytes == now->flow.shrunk_bytes;
}

bool limit_settle_overhead(const struct limit_look *look, struct ticket *ticket)
{
    struct limit_look now = {.device = ticket->device};
    limit_cancel(ticket); /* what it held is in the counters now */
    ticket->held_bytes = 0;
    struct books *books = books_lock();
    struct overhead *overhead = &books->overhead[ticket->device];
    limit_look(books, &now);
    uint64_t grown = limit_less(now.overhead_bytes, look->overhead_bytes);
    if (ticket->what == LIMIT_CONTEXT && grown > 0 &&
        limit_was_alone(look, look->is_seen ? 0 : ticket->bytes, &now) &&
        (overhead->context_bytes == 0 || grown < overhead->context_bytes))
        overhead->context_bytes = grown;
    books_unlock();
    if (grown > 0 && limit_is_over(ticket->device)) {
        ticket->bytes = grown;
        return false;
    }
    tell_overhead(ticket, grown);
    return true;
}

uint64_t limit_context_bytes(unsigned device)
{
    struct books *books = books_lock();
    uint64_t bytes = books->overhead[device].context_bytes;
    books_unlock();
    return bytes;
}
