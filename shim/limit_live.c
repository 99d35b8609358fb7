/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that adds up for limit_live.h.
 */
#include "limit_live.h"

#include "limit_books.h"
#include "limit_overhead.h"

/* What an entry adds to: its site's sum, or if that is not known the one of site 0. */
static void limit_live_count(struct limit_live *live, struct sites *sites,
                             const struct ledger_entry *entry, uint64_t bytes)
{
    if (entry->site == 0 || entry->site > sites->sites || !sites->called) {
        live->without_site_bytes += bytes;
        live->without_site_count++;
        return;
    }
    struct sites_called *called = &sites->called[entry->site];
    called->bytes += bytes;
    if (called->count++ == 0 || entry->born_mono_ns < called->oldest_mono_ns)
        called->oldest_mono_ns = entry->born_mono_ns;
}

/* Adds the entries of a device up. Of a kind that holds more than its entries, a pool's, the rest
 * is idle; entries never add up to more than their kind holds. */
static void limit_live_sum(struct limit_live *live, struct books *books, unsigned device)
{
    uint64_t rest[GPULIMIT_KINDS];
    for (unsigned kind = 0; kind < GPULIMIT_KINDS; kind++)
        rest[kind] = live->totals.by_kind[kind].bytes;
    for (uint32_t i = 0; books->sites.called && i <= books->sites.sites; i++)
        books->sites.called[i].bytes = books->sites.called[i].count = 0;
    for (uint32_t number = 0; number < books->ledger.used; number++) {
        const struct ledger_entry *entry = ledger_at(&books->ledger, number);
        if (entry->kind == GPULIMIT_KIND_NONE || entry->device != device)
            continue;
        uint64_t bytes = limit_counts_requests() ? entry->requested_bytes : entry->committed_bytes;
        if (bytes > rest[entry->kind])
            bytes = rest[entry->kind];
        rest[entry->kind] -= bytes;
        limit_live_count(live, &books->sites, entry, bytes);
    }
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        live->idle_bytes += rest[kind];
}

/* Puts a site among the largest, behind those that are as large; the last may fall out. */
static void limit_live_rank(struct limit_live *live, uint32_t number,
                            const struct sites_called *called)
{
    struct limit_live_site site = {number, called->bytes, called->count, called->oldest_mono_ns};
    unsigned at = live->top_count;
    if (at == LIMIT_LIVE_SITES) {
        struct limit_live_site *last = &live->top[--at];
        if (site.bytes > last->bytes) {
            struct limit_live_site fallen = *last;
            *last = site;
            site = fallen;
        }
        live->others++;
        live->others_bytes += site.bytes;
        live->others_count += site.count;
    } else {
        live->top[at] = site;
        live->top_count++;
    }
    for (; at > 0 && live->top[at - 1].bytes < live->top[at].bytes; at--) {
        site = live->top[at];
        live->top[at] = live->top[at - 1];
        live->top[at - 1] = site;
    }
}

void limit_live_take(unsigned device, struct limit_live *live)
{
    *live = (struct limit_live){0};
    struct books *books = books_lock();
    live->totals = books->ledger.totals[device];
    live->called = books->sites.called;
    live->kept = books->sites.kept;
    limit_live_sum(live, books, device);
    for (uint32_t i = 1; live->called && i <= books->sites.sites; i++) {
        if (live->called[i].count > 0)
            limit_live_rank(live, i, &live->called[i]);
    }
    /* The budget has what the books have, and what is under way: it is the first to take and the
     * last to give back. */
    uint64_t used = budget_used(device);
    books_unlock();
    live->overhead_bytes = limit_counts_overhead() ? live->totals.overhead_bytes : 0;
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        live->used_bytes += live->totals.by_kind[kind].bytes;
    live->used_bytes += live->overhead_bytes;
    if (used > live->used_bytes) {
        live->under_way_bytes = used - live->used_bytes;
        live->used_bytes = used;
    }
}
