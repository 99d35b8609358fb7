/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that sums up, see limit_holders.h.
 */
#include "limit_holders.h"

#include "limit_books.h"
#include "limit_overhead.h"

static const char *const limit_kind_texts[] = {
#define KIND(_name, _NAME, _text) [GPULIMIT_KIND_##_NAME] = _text,
#include "gpulimit/tbl/kinds.def"
};

/* Puts a holder among the named ones, behind those that are as large. */
static void limit_holders_name(struct limit_holders *holders, const struct limit_holder *holder)
{
    unsigned at = holders->named_count++;
    for (; at > 0 && holders->named[at - 1].bytes < holder->bytes; at--)
        holders->named[at] = holders->named[at - 1];
    holders->named[at] = *holder;
}

void limit_holders_add(struct limit_holders *holders, const char *text, uint64_t bytes,
                       uint64_t count)
{
    const struct limit_holder holder = {.text = text, .bytes = bytes, .count = count};
    if (bytes == 0)
        return;
    holders->used_bytes += bytes;
    limit_holders_name(holders, &holder);
    if (holders->named_count > LIMIT_HOLDERS_LARGEST) {
        holders->named_count--;
        holders->others++;
        holders->others_bytes += holders->named[LIMIT_HOLDERS_LARGEST].bytes;
    }
}

void limit_holders_add_overhead(struct limit_holders *holders, uint64_t bytes)
{
    const struct limit_holder holder = {.text = "overhead: context, code, streams", .bytes = bytes};
    if (bytes == 0)
        return;
    holders->used_bytes += bytes;
    holders->overhead_bytes = bytes;
    limit_holders_name(holders, &holder);
}

void limit_holders_by_kind(unsigned device, struct limit_holders *holders)
{
    *holders = (struct limit_holders){0};
    struct books *books = books_lock();
    const struct region_totals totals = books->ledger.totals[device];
    /* The budget has what the books have, and what is under way: it is the first to take and the
     * last to give back. */
    uint64_t used = budget_used(device);
    books_unlock();
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        limit_holders_add(holders, limit_kind_texts[kind], totals.by_kind[kind].bytes,
                          totals.by_kind[kind].count);
    uint64_t overhead = limit_counts_overhead() ? totals.overhead_bytes : 0;
    uint64_t known = holders->used_bytes + overhead;
    limit_holders_add(holders, "requests under way", used > known ? used - known : 0, 0);
    limit_holders_add_overhead(holders, overhead);
}

/* What an allocation holds, as its device's counters have it. */
static uint64_t limit_held_by(const struct ledger_entry *entry)
{
    return limit_counts_requests() ? entry->requested_bytes : entry->committed_bytes;
}

/* Adds the entries of a device up by the names of their sites, and takes them out of rest, by kind.
 */
static void limit_sum_sites(struct books *books, unsigned device, uint64_t rest[GPULIMIT_KINDS])
{
    struct sites_called *called = books->sites.called;
    for (uint32_t i = 0; i <= books->sites.sites; i++)
        called[i].bytes = called[i].count = 0;
    for (uint32_t number = 0; number < books->ledger.used; number++) {
        const struct ledger_entry *entry = ledger_at(&books->ledger, number);
        uint64_t bytes = limit_held_by(entry);
        if (entry->kind == GPULIMIT_KIND_NONE || entry->device != device || entry->site == 0 ||
            entry->site > books->sites.sites || bytes > rest[entry->kind])
            continue;
        rest[entry->kind] -= bytes;
        struct sites_called *site = &called[called[entry->site].first];
        site->bytes += bytes;
        site->count++;
    }
}

void limit_holders_by_site(unsigned device, struct limit_holders *holders)
{
    uint64_t rest[GPULIMIT_KINDS] = {0};
    *holders = (struct limit_holders){0};
    struct books *books = books_lock();
    const struct region_totals *totals = &books->ledger.totals[device];
    if (!books->sites.called) {
        books_unlock();
        limit_holders_by_kind(device, holders);
        return;
    }
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        rest[kind] = totals->by_kind[kind].bytes;
    limit_sum_sites(books, device, rest);
    uint64_t used = budget_used(device);
    uint64_t overhead = limit_counts_overhead() ? totals->overhead_bytes : 0;
    for (uint32_t i = 1; i <= books->sites.sites; i++)
        limit_holders_add(holders, books->sites.called[i].name, books->sites.called[i].bytes,
                          books->sites.called[i].count);
    books_unlock();
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++)
        limit_holders_add(
            holders, kind == GPULIMIT_KIND_ASYNC ? "idle in memory pools" : limit_kind_texts[kind],
            rest[kind], 0);
    uint64_t known = holders->used_bytes + overhead;
    limit_holders_add(holders, "requests under way", used > known ? used - known : 0, 0);
    limit_holders_add_overhead(holders, overhead);
}
