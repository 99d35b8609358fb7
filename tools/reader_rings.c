/* SPDX-License-Identifier: MIT
 *
 * The rings of a ledger file: its latest events, and the program's own marks. The records of a ring
 * have a number instead of a sequence number, 0 while they are written; the rest is as in
 * reader_records.c: what has the same number before and after is of one moment.
 */
#include <stdlib.h>
#include <string.h>

#include "reader_parts.h"

_Static_assert(sizeof(struct gpulimit_event) == READER_RING_BYTES, "an event is such a record");
_Static_assert(sizeof(struct gpulimit_mark) == READER_RING_BYTES, "a mark too");

/* In the order of the file; from the oldest, once sorted. */
struct reader_ring {
    unsigned char (*records)[READER_RING_BYTES];
    uint32_t count;
};

static uint64_t reader_get_number(const void *record)
{
    uint64_t number;

    memcpy(&number, record, sizeof(number));
    return number;
}

static int reader_compare_numbers(const void *first, const void *second)
{
    uint64_t a = reader_get_number(first);
    uint64_t b = reader_get_number(second);

    return a < b ? -1 : a > b;
}

/* Keeps the whole ones, of three copies that lie one behind the other, and sorts them. A number
 * that belongs elsewhere in the ring is garbage. */
static void reader_sift_ring(struct reader_ring *ring, uint32_t copied, uint32_t ring_count)
{
    unsigned char(*second)[READER_RING_BYTES] = ring->records + copied;
    unsigned char(*third)[READER_RING_BYTES] = second + copied;

    for (uint32_t place = 0; place < copied; place++) {
        uint64_t number = reader_get_number(ring->records[place]);

        if (number != 0 && number == reader_get_number(third[place]) &&
            number == reader_get_number(second[place]) && (number - 1) % ring_count == place) {
            memcpy(ring->records[ring->count++], second[place], READER_RING_BYTES);
        }
    }
    if (ring->count > 0) {
        qsort(ring->records, ring->count, READER_RING_BYTES, reader_compare_numbers);
    }
}

static const struct gpulimit_extent *reader_find_ring(const struct gpulimit_header *header,
                                                      uint32_t section)
{
    for (uint32_t number = 0; number < header->extents_used; number++) {
        if (header->extents[number].section == section && header->extents[number].count > 0) {
            return &header->extents[number];
        }
    }
    return NULL;
}

/* The ring's records are for the caller to free, whatever the outcome. */
static enum gpulimit_reader_status reader_read_ring(struct reader *reader, uint32_t section,
                                                    struct reader_ring *ring)
{
    const struct gpulimit_extent *extent = reader_find_ring(&reader->header, section);
    uint32_t copied;

    *ring = (struct reader_ring){0};
    if (!extent) {
        return GPULIMIT_READER_OK;
    }
    copied = extent->count < GPULIMIT_READER_RING_MAX ? extent->count : GPULIMIT_READER_RING_MAX;
    ring->records = calloc(3 * (size_t)copied, READER_RING_BYTES);
    if (!ring->records) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (size_t copy = 0; copy < 3; copy++) {
        enum records_outcome outcome =
            records_copy(reader->fd, extent->offset, (size_t)copied * READER_RING_BYTES,
                         ring->records + copy * copied);

        if (outcome != RECORDS_SETTLED) {
            return reader_fail_copy(reader, outcome);
        }
    }
    reader_sift_ring(ring, copied, extent->count);
    return GPULIMIT_READER_OK;
}

static uint32_t reader_find_place(const struct reader *reader, uint32_t device)
{
    return device < GPULIMIT_DEVICES ? reader->places[device] : READER_NO_PLACE;
}

static enum gpulimit_reader_status reader_fill_events(struct reader *reader,
                                                      const struct reader_ring *ring,
                                                      struct gpulimit_ledger *ledger)
{
    ledger->events = calloc((size_t)ring->count + 1, sizeof(*ledger->events));
    if (!ledger->events) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (uint32_t i = 0; i < ring->count; i++) {
        const struct gpulimit_event *record = (const void *)ring->records[i];
        uint32_t kind = GPULIMIT_PLACE_KIND(record->place);
        uint32_t device = reader_find_place(reader, GPULIMIT_PLACE_DEVICE(record->place));

        if (device == READER_NO_PLACE || record->what == GPULIMIT_EVENT_NONE) {
            continue;
        }
        ledger->events[ledger->event_count++] = (struct gpulimit_ledger_event){
            .number = record->number,
            .mono_ns = record->mono_ns,
            .what = record->what,
            .kind = kind < reader->header.kinds ? kind : GPULIMIT_KIND_NONE,
            .device = device,
            .api = GPULIMIT_PLACE_API(record->place),
            .thread_id = record->thread_id,
            .site = record->site,
            .tag = record->tag,
            .bytes = record->bytes,
            .charged_bytes = record->charged_bytes,
            .address = record->address,
        };
    }
    return GPULIMIT_READER_OK;
}

static enum gpulimit_reader_status reader_fill_marks(struct reader *reader,
                                                     const struct reader_ring *ring,
                                                     struct gpulimit_ledger *ledger)
{
    ledger->marks = calloc((size_t)ring->count + 1, sizeof(*ledger->marks));
    if (!ledger->marks) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (uint32_t i = 0; i < ring->count; i++) {
        const struct gpulimit_mark *record = (const void *)ring->records[i];
        uint32_t device = reader_find_place(reader, record->device);

        if (device == READER_NO_PLACE) {
            continue;
        }
        ledger->marks[ledger->mark_count++] = (struct gpulimit_ledger_mark){
            .number = record->number,
            .mono_ns = record->mono_ns,
            .text = record->text,
            .device = device,
            .charged_bytes = record->charged_bytes,
            .peak_bytes = record->peak_bytes,
            .requested_bytes = record->requested_bytes,
            .allocations_total = record->allocations_total,
            .live_allocations = record->live_allocations,
            .denials = record->denials,
        };
    }
    return GPULIMIT_READER_OK;
}

enum gpulimit_reader_status reader_read_rings(struct reader *reader, struct gpulimit_ledger *ledger)
{
    struct reader_ring ring;
    enum gpulimit_reader_status status = reader_read_ring(reader, GPULIMIT_SECTION_EVENTS, &ring);

    if (status == GPULIMIT_READER_OK) {
        status = reader_fill_events(reader, &ring, ledger);
    }
    free(ring.records);
    if (status != GPULIMIT_READER_OK) {
        return status;
    }
    status = reader_read_ring(reader, GPULIMIT_SECTION_MARKS, &ring);
    if (status == GPULIMIT_READER_OK) {
        status = reader_fill_marks(reader, &ring, ledger);
    }
    free(ring.records);
    return status;
}
