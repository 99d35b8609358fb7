/* SPDX-License-Identifier: MIT
 *
 * Adds the tallies up by the names of their sites, see limit_report.h.
 */
#include "limit_report.h"

#include "limit_books.h"

/* The site that stands for a tally's: the first of its name. 0: it has none. */
static uint32_t limit_place_of(const struct sites *sites, const struct tally *tally)
{
    return sites->called && tally->site <= sites->sites ? sites->called[tally->site].first : 0;
}

/* What a tally has, or had at the peak, goes to a site or to those without one. */
static void limit_add_tally(const struct tally *tally, uint64_t epoch, bool is_at_peak,
                            struct report_site *site)
{
    site->bytes += is_at_peak ? tally_peak_bytes(tally, epoch) : tally->bytes;
    site->count += is_at_peak ? tally_peak_count(tally, epoch) : tally_live(tally);
}

static void limit_add_tallies(struct books *books, unsigned device, bool is_at_peak,
                              struct report_holders *holders)
{
    const struct tallies *tallies = &books->ledger.tallies;
    struct sites *sites = &books->sites;
    struct report_site unknown = {.where = "(unknown)"};
    uint64_t epoch = books->ledger.totals[device].peak_epoch;
    for (uint32_t i = 1; sites->called && i <= sites->sites; i++)
        sites->called[i].bytes = sites->called[i].count = 0;
    for (uint32_t number = 1; number <= tallies->count; number++) {
        const struct tally *tally = &tallies->list[number];
        uint32_t place = limit_place_of(sites, tally);
        struct report_site site = {0};
        if (tally->device != device)
            continue;
        limit_add_tally(tally, epoch, is_at_peak, place > 0 ? &site : &unknown);
        if (place > 0) {
            sites->called[place].bytes += site.bytes;
            sites->called[place].count += site.count;
        }
    }
    for (uint32_t i = 1; sites->called && i <= sites->sites; i++)
        report_add_site(holders, sites->called[i].name, sites->called[i].bytes,
                        sites->called[i].count);
    report_add_site(holders, unknown.where, unknown.bytes, unknown.count);
}

static void limit_fill_holders(struct books *books, unsigned device, bool is_at_peak,
                               struct report_holders *holders)
{
    const struct region_totals *totals = &books->ledger.totals[device];
    *holders = (struct report_holders){
        .bytes = is_at_peak ? totals->peak_bytes : totals->charged_bytes,
        .overhead_bytes = is_at_peak                ? totals->peak_overhead_bytes
                          : limit_counts_requests() ? 0
                                                    : totals->overhead_bytes};
    limit_add_tallies(books, device, is_at_peak, holders);
    report_settle(holders);
}

void limit_report(struct books *books, unsigned device, uint64_t start_mono_ns,
                  struct report_device *report)
{
    const struct region_totals *totals = &books->ledger.totals[device];
    uint64_t peak_mono_ns = totals->peak_mono_ns;
    *report = (struct report_device){
        .gpu_index = device,
        .gpu_uuid = start_uuid(device),
        .limit_bytes = totals->limit_bytes,
        .peak_after_ns = peak_mono_ns > start_mono_ns ? peak_mono_ns - start_mono_ns : 0,
        .requested_bytes = totals->requested_bytes,
        .committed_bytes = totals->committed_bytes,
        .live_allocations = totals->live_allocations,
        .allocations_total = totals->allocations_total,
        .frees_total = totals->frees_total,
        .largest_bytes = totals->largest_bytes,
        .denials = totals->denials,
        .denials_recovered = totals->denials_recovered,
        .denied_bytes = totals->denied_bytes,
        .driver_denials = totals->driver_denials,
    };
    limit_fill_holders(books, device, true, &report->peak);
    limit_fill_holders(books, device, false, &report->end);
}
