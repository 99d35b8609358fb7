/* SPDX-License-Identifier: MIT
 *
 * The straight line: reserve, commit, cancel; detach, release, restore.
 */
#include "limit.h"

#include "clock.h"
#include "guard.h"
#include "limit_books.h"
#include "limit_overhead.h"
#include "limit_pools.h"
#include "limit_sites.h"
#include "limit_tags.h"
#include "refusal.h"
#include "tell.h"

/* The refusal that this thread has not got over yet: an allocation of as much means that it has. */
static _Thread_local struct {
    uint64_t bytes; /* 0: none */
    unsigned device;
} limit_refused __attribute__((tls_model("initial-exec")));

uint64_t limit_most(enum gpulimit_kind kind, uint64_t bytes)
{
    if (limit_counts_requests())
        return bytes;
    if (kind == GPULIMIT_KIND_LINEAR || kind == GPULIMIT_KIND_ARRAY)
        return blocks_most(bytes);
    if (kind == GPULIMIT_KIND_ASYNC || kind == GPULIMIT_KIND_GRAPH)
        return pools_most(bytes);
    return bytes;
}

/* Takes the most that the request can cost. */
static bool limit_take(struct ticket *ticket)
{
    uint64_t most = limit_most(ticket->kind, ticket->bytes);
    if (!budget_take(ticket->device, most))
        return false;
    ticket->held_bytes = most;
    return true;
}

/* Whether the request may well fit into what the driver holds already: a small piece into a block
 * that others have begun, a stream-ordered one into a hole of its pool. How often that is wrong:
 * docs/gpu-results.md. */
static bool limit_may_be_free(const struct ticket *ticket)
{
    bool may = false;
    if (limit_counts_requests())
        return false;
    struct books *books = books_lock();
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        may = ticket->bytes < BLOCKS_BYTES && books->blocks.users.count > 0;
    } else if (ticket->kind == GPULIMIT_KIND_ARRAY) {
        may = shares_fit(&books->arrays[ticket->device], ticket->bytes);
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        struct pool *pool = pools_find(&books->pools, ticket->owner);
        /* Between this look and the driver's call another thread can take a hole away, by a
         * synchronisation or a free. Then idle chunks are given back first, and taken anew. */
        may = pool && !limit_is_threaded() && holes_fit(&pool->holes, ticket->bytes);
        if (may)
            pool->has_grace = true; /* from this look on, see limit_give_surplus */
    }
    books_unlock();
    return may;
}

/* Finds room: in the budget; without, in what is committed already; at last in the budget again,
 * when idle pools have given back what they can. That takes holes away, so while one thread counts
 * on a hole no other trims. */
static bool limit_find_room(struct ticket *ticket)
{
    if (limit_take(ticket))
        return true;
    if (!budget_take_grace(ticket->device))
        return false;
    /* One guess beyond the limit at a time: not on top of what overhead is over already. */
    ticket->has_grace = !limit_is_over(ticket->device) && limit_may_be_free(ticket);
    if (ticket->has_grace) {
        budget_guess(ticket->device);
        return true;
    }
    start_driver()->reclaim(ticket->device);
    bool fits = limit_take(ticket);
    budget_give_grace(ticket->device);
    return fits;
}

/* A refused request, with where it came from and under which name: that takes locks, so it is asked
 * before the books'. */
static struct ticket limit_locate(const struct ticket *ticket)
{
    struct ticket located = *ticket;
    if (start_config()->error.length == 0) {
        located.site = limit_site(UINT64_MAX);
        located.tag = limit_tag();
    }
    return located;
}

/* Shows a refusal that has been counted, and remembers it. */
static void limit_note_refusal(struct books *books, const struct ticket *ticket,
                               enum gpulimit_event_what what)
{
    const struct ledger_entry entry = {.requested_bytes = ticket->bytes,
                                       .site = ticket->site,
                                       .tag = ticket->tag,
                                       .api = (uint16_t)ticket->api,
                                       .kind = (uint8_t)ticket->kind,
                                       .device = (uint8_t)ticket->device};
    ledger_publish(&books->ledger, ticket->device, GPULIMIT_KIND_NONE);
    ledger_note(&books->ledger, what, &entry);
}

static void limit_count_denial(const struct ticket *ticket)
{
    struct books *books = books_lock();
    struct region_totals *totals = &books->ledger.totals[ticket->device];
    totals->denials++;
    totals->denied_bytes += ticket->bytes;
    totals->denied_mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    limit_note_refusal(books, ticket, GPULIMIT_EVENT_REFUSED);
    books_unlock();
}

static void limit_refuse(const struct ticket *ticket)
{
    limit_refused.bytes = ticket->bytes;
    limit_refused.device = ticket->device;
    const struct ticket located = limit_locate(ticket);
    if (ticket->device < BUDGET_DEVICES)
        limit_count_denial(&located);
    tell_refusal(&located);
}

bool limit_reserve(struct ticket *ticket, enum gpulimit_kind kind, unsigned device, uint64_t owner,
                   enum api api, uint64_t bytes)
{
    *ticket = (struct ticket){
        .kind = kind, .api = guard_name(api), .device = device, .owner = owner, .bytes = bytes};
    return limit_reserve_ticket(ticket);
}

bool limit_reserve_ticket(struct ticket *ticket)
{
    if (start_config()->error.length > 0 || ticket->device >= BUDGET_DEVICES ||
        !limit_find_room(ticket)) {
        limit_refuse(ticket);
        return false;
    }
    if (!limit_begin_in_pool(ticket)) {
        budget_give(ticket->device, ticket->held_bytes); /* no pool has it under way */
        limit_give_up(ticket);
        return false;
    }
    return true;
}

/* What the allocation has cost, in committed bytes, by the rule of its kind. Returns false, with
 * nothing changed, when there is no memory to remember it by. */
static bool limit_measure(struct books *books, const struct ticket *ticket, uint64_t address,
                          uint64_t bytes, int64_t *cost)
{
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        uint64_t touched;
        if (!blocks_add(&books->blocks, address, bytes, &touched))
            return false;
        *cost = (int64_t)touched;
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        struct pool *pool = &books->pools.places[ticket->pool];
        *cost = pools_end(pool, ticket->pool_bytes, &ticket->reading);
        holes_fill(&pool->holes, address, bytes, *cost > 0 ? (uint64_t)*cost : 0,
                   pools_was_alone(pool, ticket->pool_number));
    } else if (ticket->kind == GPULIMIT_KIND_ARRAY) {
        *cost = (int64_t)shares_add(&books->arrays[ticket->device], bytes);
    } else {
        *cost = (int64_t)bytes;
    }
    return true;
}

/* Undoes limit_measure, as far as the driver will undo what was measured. */
static void limit_unmeasure(struct books *books, const struct ticket *ticket, uint64_t address,
                            uint64_t bytes, int64_t cost)
{
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        blocks_remove(&books->blocks, address, bytes);
    } else if (ticket->kind == GPULIMIT_KIND_ARRAY) {
        shares_remove(&books->arrays[ticket->device], bytes);
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        /* The pool holds the growth until it is trimmed: it stays charged until a reading says
         * otherwise. */
        limit_note_change(books, ticket->device, ticket->kind, cost);
        limit_leave_pool(books, ticket->pool);
    }
}

bool limit_settle(struct books *books, struct ticket *ticket, int64_t charge)
{
    limit_end_grace(books, ticket);
    int64_t more = charge - (int64_t)ticket->held_bytes;
    if (more > 0 && !budget_take(ticket->device, (uint64_t)more))
        return false;
    if (more < 0)
        limit_give_surplus(books, ticket, (uint64_t)-more);
    ticket->held_bytes = (uint64_t)charge;
    return true;
}

/* Whether the truth is to be looked at now: often enough to notice what kernels bring along, and
 * seldom enough to cost nothing. One thread does. */
static bool limit_is_due(struct books *books, unsigned device, uint64_t now_ns)
{
    enum { EVERY_NS = 100000000 };
    struct overhead *overhead = &books->overhead[device];
    if (now_ns < overhead->due_mono_ns || !limit_counts_overhead())
        return false;
    overhead->due_mono_ns = now_ns + EVERY_NS;
    return true;
}

/* Enters a measured allocation into the ledger. Returns false when there is no memory for it. */
static bool limit_enter(struct books *books, const struct ticket *ticket, uint64_t address,
                        uint64_t bytes, int64_t cost, bool *is_due)
{
    struct ledger *ledger = &books->ledger;
    struct ledger_entry entry = {
        .address = address,
        .requested_bytes = bytes,
        .committed_bytes = ticket->kind == GPULIMIT_KIND_ASYNC ? bytes : (uint64_t)cost,
        .owner = ticket->owner,
        .site = ticket->site,
        .tag = ticket->tag,
        .stream = ticket->stream_name,
        .api = (uint16_t)ticket->api,
        .pool = ticket->pool,
        .kind = (uint8_t)ticket->kind,
        .device = (uint8_t)ticket->device,
        .is_handle = ticket->kind == GPULIMIT_KIND_VMM,
    };
    uint32_t stale;
    uint32_t number = ledger_insert(ledger, &entry, &stale);
    if (number == LEDGER_NONE)
        return false;
    if (ticket->kind == GPULIMIT_KIND_VMM &&
        mappings_create(&books->mappings, address, number) == MAPPINGS_NONE) {
        ledger_remove(ledger, number);
        return false;
    }
    if (stale != LEDGER_NONE)
        limit_remove_entry(books, stale);
    ledger_commit(ledger, ticket->device, ticket->kind, cost);
    if (limit_refused.bytes > 0 && limit_refused.device == ticket->device &&
        bytes >= limit_refused.bytes) {
        limit_refused.bytes = 0;
        ledger->totals[ticket->device].denials_recovered++;
    }
    ledger_publish(ledger, ticket->device, ticket->kind);
    ledger_note(ledger, GPULIMIT_EVENT_ALLOCATED, ledger_at(ledger, number));
    *is_due = limit_is_due(books, ticket->device, ledger_at(ledger, number)->born_mono_ns);
    return true;
}

bool limit_commit(struct ticket *ticket, uint64_t address, uint64_t bytes)
{
    int64_t cost = 0;
    bool is_due = false;
    ticket->site = limit_site(bytes);
    ticket->tag = limit_tag();
    ticket->stream_name = limit_stream(ticket->stream);
    struct books *books = books_lock();
    bool is_measured = limit_measure(books, ticket, address, bytes, &cost);
    bool is_entered =
        is_measured &&
        limit_settle(books, ticket, limit_counts_requests() ? (int64_t)bytes : cost) &&
        limit_enter(books, ticket, address, bytes, cost, &is_due);
    if (!is_entered) {
        budget_give(ticket->device, ticket->held_bytes);
        if (is_measured)
            limit_unmeasure(books, ticket, address, bytes, cost);
    }
    books_unlock();
    if (!is_entered)
        return false;
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
    if (is_due)
        start_driver()->look(ticket->device);
    tell_allocation(ticket, bytes);
    return true;
}

void limit_give_up(const struct ticket *ticket)
{
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
    limit_refuse(ticket);
}

void limit_cancel(struct ticket *ticket)
{
    struct books *books = books_lock();
    struct pool *pool = limit_pool_of(books, ticket);
    if (pool) {
        limit_note_change(books, ticket->device, ticket->kind,
                          pools_cancel(pool, ticket->pool_bytes));
        limit_end_grace(books, ticket);
    }
    limit_give_surplus(books, ticket, ticket->held_bytes);
    if (ticket->kind == GPULIMIT_KIND_ASYNC)
        limit_leave_pool(books, ticket->pool);
    books_unlock();
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
}

void limit_driver_refused(const struct ticket *ticket)
{
    if (ticket->device >= BUDGET_DEVICES)
        return;
    const struct ticket located = limit_locate(ticket);
    struct books *books = books_lock();
    books->ledger.totals[ticket->device].driver_denials++;
    limit_note_refusal(books, &located, GPULIMIT_EVENT_DRIVER_REFUSED);
    books_unlock();
    tell_driver_refusal(&located);
}

void limit_note_change(struct books *books, unsigned device, enum gpulimit_kind kind, int64_t bytes)
{
    if (bytes == 0)
        return;
    if (!limit_counts_requests())
        budget_adjust(device, bytes);
    ledger_commit(&books->ledger, device, kind, bytes);
    ledger_publish(&books->ledger, device, kind);
}

/* Takes an entry out of the books; the budget still has it. */
static void limit_take_out(struct books *books, uint32_t number, struct removal *removal)
{
    struct ledger_entry *entry = &removal->entry;
    *entry = *ledger_at(&books->ledger, number);
    if (entry->kind == GPULIMIT_KIND_LINEAR)
        removal->freed_bytes =
            blocks_remove(&books->blocks, entry->address, entry->requested_bytes);
    else if (entry->kind == GPULIMIT_KIND_ARRAY)
        removal->freed_bytes = shares_remove(&books->arrays[entry->device], entry->requested_bytes);
    else if (entry->kind == GPULIMIT_KIND_ASYNC)
        removal->freed_bytes = 0; /* the pool keeps it */
    else
        removal->freed_bytes = entry->committed_bytes;
    if (entry->kind == GPULIMIT_KIND_ASYNC)
        holes_leave(limit_holes(books, entry), entry->address, entry->requested_bytes);
    ledger_remove(&books->ledger, number);
    ledger_commit(&books->ledger, entry->device, entry->kind, -(int64_t)removal->freed_bytes);
    ledger_publish(&books->ledger, entry->device, entry->kind);
    ledger_note(&books->ledger, GPULIMIT_EVENT_FREED, entry);
}

void limit_give_back(const struct removal *removal)
{
    budget_give(removal->entry.device,
                limit_counts_requests() ? removal->entry.requested_bytes : removal->freed_bytes);
}

void limit_remove_entry(struct books *books, uint32_t number)
{
    struct removal removal;
    limit_take_out(books, number, &removal);
    limit_give_back(&removal);
    if (removal.entry.kind == GPULIMIT_KIND_ASYNC) {
        holes_stay(limit_holes(books, &removal.entry), removal.entry.address,
                   removal.entry.requested_bytes);
        limit_leave_pool(books, removal.entry.pool);
    }
}

void limit_detach(struct removal *removal, uint64_t address)
{
    removal->entry.kind = GPULIMIT_KIND_NONE;
    struct books *books = books_lock();
    uint32_t number = ledger_find(&books->ledger, address);
    if (number != LEDGER_NONE)
        limit_take_out(books, number, removal);
    books_unlock();
}

void limit_release(const struct removal *removal)
{
    if (removal->entry.kind == GPULIMIT_KIND_NONE)
        return;
    limit_give_back(removal);
    if (removal->entry.kind == GPULIMIT_KIND_ASYNC) {
        struct books *books = books_lock();
        /* cuMemFree trims the pool to its threshold, cuMemFreeAsync does not (measured, driver
         * 580.159). */
        holes_stay(limit_holes(books, &removal->entry), removal->entry.address,
                   removal->entry.requested_bytes);
        holes_shrink(limit_holes(books, &removal->entry));
        limit_leave_pool(books, removal->entry.pool);
        books_unlock();
    }
}

void limit_restore(const struct removal *removal)
{
    const struct ledger_entry *entry = &removal->entry;
    if (entry->kind == GPULIMIT_KIND_NONE)
        return;
    uint64_t bytes = removal->freed_bytes;
    uint32_t stale;
    struct books *books = books_lock();
    if (entry->kind == GPULIMIT_KIND_ASYNC)
        holes_stay(limit_holes(books, entry), entry->address, entry->requested_bytes);
    /* Others may have come to its blocks meanwhile, or gone: what it commits now need not be what
     * it gave up. */
    if (ledger_find(&books->ledger, entry->address) != LEDGER_NONE ||
        (entry->kind == GPULIMIT_KIND_LINEAR &&
         !blocks_add(&books->blocks, entry->address, entry->requested_bytes, &bytes)) ||
        ledger_insert(&books->ledger, entry, &stale) == LEDGER_NONE) {
        /* A newer owner of the address: it was freed after all. Or no memory to remember it by. */
        limit_give_back(removal);
        if (entry->kind == GPULIMIT_KIND_ASYNC)
            limit_leave_pool(books, entry->pool);
    } else {
        if (entry->kind == GPULIMIT_KIND_ARRAY)
            bytes = shares_add(&books->arrays[entry->device], entry->requested_bytes);
        int64_t change = (int64_t)(bytes - removal->freed_bytes);
        if (!limit_counts_requests())
            budget_adjust(entry->device, change);
        ledger_commit(&books->ledger, entry->device, entry->kind, (int64_t)bytes);
        ledger_publish(&books->ledger, entry->device, entry->kind);
        ledger_note(&books->ledger, GPULIMIT_EVENT_ALLOCATED, entry); /* again */
    }
    books_unlock();
}

void limit_view(unsigned device, uint64_t *total_bytes, uint64_t *free_bytes)
{
    if (device >= BUDGET_DEVICES)
        return;
    uint64_t limit = budget_limit(device);
    uint64_t used = budget_used(device);
    uint64_t left = limit > used ? limit - used : 0;
    if (limit == GPULIMIT_NO_LIMIT)
        return;
    if (*total_bytes > limit)
        *total_bytes = limit;
    if (*free_bytes > left)
        *free_bytes = left;
}
