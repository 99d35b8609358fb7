/* SPDX-License-Identifier: MIT
 *
 * The report of a run, made of its ledger: the same as the library writes when its process ends,
 * and so all that there is of a process that was killed.
 */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "emit_site.h"
#include "memory.h"
#include "sites.h"

/* What one place in the program holds, or several call sites that read the same. */
struct record_place {
    const char *where;
    uint64_t peak_bytes, peak_count;
    uint64_t bytes, count;
};

/* A counter beyond JSON's integers is nonsense from a damaged ledger. */
static uint64_t record_number(uint64_t number)
{
    return number <= INT64_MAX ? number : INT64_MAX;
}

static uint64_t record_limit(uint64_t bytes)
{
    return bytes == GPULIMIT_NO_LIMIT ? bytes : record_number(bytes);
}

static uint64_t record_time(uint64_t time_ns)
{
    return time_ns <= RECORD_TIME_MAX ? time_ns : RECORD_TIME_MAX;
}

static uint64_t record_add_up(uint64_t a, uint64_t b)
{
    return record_number(record_number(a) + record_number(b));
}

static uint64_t record_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static const char *record_name_site(const struct gpulimit_ledger *ledger, uint32_t number,
                                    struct symbols *symbols, struct record *record)
{
    const struct gpulimit_site *site = gpulimit_reader_site(ledger, number);
    uint32_t chosen = site ? sites_choose(ledger, site) : SITES_NO_FRAME;
    struct sites_frame frame;
    const char *where;
    char *label;

    if (chosen == SITES_NO_FRAME) {
        return "(unknown)";
    }
    frame = sites_get_frame(ledger, site, chosen);
    label = emit_site_label(&frame, symbols, false);
    where = record_keep(record, label);
    free(label);
    return where;
}

static int record_compare_places(const void *first, const void *second)
{
    const struct record_place *a = first;
    const struct record_place *b = second;

    return strcmp(a->where, b->where);
}

/* The places of a device, by name, each once. For the caller to free(). */
static struct record_place *record_gather(const struct gpulimit_ledger *ledger, uint32_t device,
                                          struct symbols *symbols, struct record *record,
                                          size_t *count)
{
    struct record_place *places = NULL;
    size_t joined = 0;

    *count = 0;
    for (uint32_t i = 0; i < ledger->tally_count; i++) {
        const struct gpulimit_ledger_tally *tally = &ledger->tallies[i];

        if (tally->device != device || (tally->bytes == 0 && tally->peak_bytes == 0)) {
            continue;
        }
        places = memory_grow(places, *count, sizeof(*places));
        places[(*count)++] = (struct record_place){
            .where = record_name_site(ledger, tally->site, symbols, record),
            .peak_bytes = tally->peak_bytes,
            .peak_count = tally->peak_count,
            .bytes = tally->bytes,
            .count = record_less(tally->allocations_total, tally->frees_total)};
    }
    if (*count > 0) {
        qsort(places, *count, sizeof(*places), record_compare_places);
    }
    for (size_t i = 1; i < *count; i++) {
        struct record_place *last = &places[joined];

        if (strcmp(last->where, places[i].where) != 0) {
            places[++joined] = places[i];
            continue;
        }
        last->peak_bytes = record_add_up(last->peak_bytes, places[i].peak_bytes);
        last->peak_count = record_add_up(last->peak_count, places[i].peak_count);
        last->bytes = record_add_up(last->bytes, places[i].bytes);
        last->count = record_add_up(last->count, places[i].count);
    }
    *count = *count > 0 ? joined + 1 : 0;
    return places;
}

/* Who held what then, and holds what now. Of a ledger that has no tallies nothing is known of it.
 */
static void record_fill_holders(const struct gpulimit_ledger *ledger, uint32_t device,
                                struct symbols *symbols, struct record *record,
                                struct report_device *figures)
{
    size_t count;
    struct record_place *places = record_gather(ledger, device, symbols, record, &count);

    for (size_t i = 0; i < count; i++) {
        report_add_site(&figures->peak, places[i].where, record_number(places[i].peak_bytes),
                        record_number(places[i].peak_count));
        report_add_site(&figures->end, places[i].where, record_number(places[i].bytes),
                        record_number(places[i].count));
    }
    if (ledger->tally_count == 0) {
        report_add_site(&figures->peak, "(unknown)",
                        record_less(figures->peak.bytes, figures->peak.overhead_bytes), 0);
        report_add_site(&figures->end, "(unknown)",
                        record_less(figures->end.bytes, figures->end.overhead_bytes),
                        figures->live_allocations);
    }
    report_settle(&figures->peak);
    report_settle(&figures->end);
    free(places);
}

static void record_fill_figures(const struct gpulimit_ledger *ledger,
                                const struct gpulimit_ledger_device *device,
                                struct report_device *figures)
{
    bool has_overhead = ledger->count_mode == GPULIMIT_COUNT_PROCESS;

    figures->gpu_index = device->gpu_index;
    figures->limit_bytes = record_limit(device->limit_bytes);
    figures->peak_after_ns = record_less(device->peak_mono_ns, ledger->created_mono_ns);
    figures->peak.bytes = record_number(device->peak_bytes);
    figures->peak.overhead_bytes = has_overhead ? record_number(device->peak_overhead_bytes) : 0;
    figures->end.bytes = record_number(device->charged_bytes);
    figures->end.overhead_bytes = has_overhead ? record_number(device->overhead_bytes) : 0;
    figures->requested_bytes = record_number(device->requested_bytes);
    figures->committed_bytes = record_number(device->committed_bytes);
    figures->live_allocations = record_number(device->live_allocations);
    figures->allocations_total = record_number(device->allocations_total);
    figures->frees_total = record_number(device->frees_total);
    figures->largest_bytes = record_number(device->largest_bytes);
    figures->denials = record_number(device->denials);
    figures->denials_recovered = record_number(device->denials_recovered);
    figures->denied_bytes = record_number(device->denied_bytes);
    figures->driver_denials = record_number(device->driver_denials);
}

static void record_fill_history(const struct gpulimit_ledger *ledger, uint32_t number,
                                struct record *record, struct record_device *device)
{
    const struct gpulimit_ledger_device *source = &ledger->devices[number];

    for (uint32_t i = 0; i < ledger->mark_count; i++) {
        const struct gpulimit_ledger_mark *mark = &ledger->marks[i];

        if (mark->device == number) {
            *record_add_mark(device) = (struct record_mark){
                .name = record_keep(record, gpulimit_reader_text(ledger, mark->text)),
                .after_ns = record_less(mark->mono_ns, ledger->created_mono_ns),
                .charged_bytes = record_number(mark->charged_bytes),
                .peak_bytes = record_number(mark->peak_bytes),
                .requested_bytes = record_number(mark->requested_bytes),
                .allocations_total = record_number(mark->allocations_total),
                .live_allocations = record_number(mark->live_allocations),
                .denials = record_number(mark->denials)};
        }
    }
    for (uint32_t i = 0; i < source->sample_count; i++) {
        struct gpulimit_ledger_sample *sample = record_add_sample(device);

        *sample = source->samples[i];
        sample->highest_bytes = record_number(sample->highest_bytes);
        sample->lowest_bytes = record_number(sample->lowest_bytes);
        sample->limit_bytes = record_limit(sample->limit_bytes);
        sample->denials = record_number(sample->denials);
    }
    device->samples_after_ns = record_less(source->sample_start_mono_ns, ledger->created_mono_ns);
    device->interval_ns = source->sample_interval_ns;
}

void record_from_ledger(const struct gpulimit_ledger *ledger, struct symbols *symbols,
                        struct record *record)
{
    *record = (struct record){0};
    record->head = (struct report_head){
        .version = record_keep(record, ledger->library_version),
        .pid = ledger->pid,
        .uid = ledger->owner_uid,
        .state = gpulimit_reader_state_name(ledger->state),
        .limit_text = record_keep(record, ledger->limit_text),
        .counts_requests = ledger->count_mode != GPULIMIT_COUNT_PROCESS,
        .start_time_ns = record_time(ledger->created_time_ns),
        .end_time_ns = record_time(ledger->ended_time_ns),
    };
    for (uint32_t i = 0; i < ledger->argument_count; i++) {
        record_add_argument(record, ledger->arguments[i]);
    }
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        struct record_device *device = record_add_device(record);

        device->figures.gpu_uuid = record_keep(record, ledger->devices[i].gpu_uuid);
        record_fill_figures(ledger, &ledger->devices[i], &device->figures);
        record_fill_holders(ledger, i, symbols, record, &device->figures);
        record_fill_history(ledger, i, record, device);
    }
}
