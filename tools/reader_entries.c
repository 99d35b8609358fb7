/* SPDX-License-Identifier: MIT
 *
 * The live allocations of a ledger file, and the names of the APIs that made them.
 */
#include <stdlib.h>

#include "reader_parts.h"

/* Names are written once, before their extent is made known: one copy of them is good. */
static enum gpulimit_reader_status reader_read_api_extent(struct reader *reader,
                                                          const struct gpulimit_extent *extent,
                                                          struct gpulimit_ledger *ledger)
{
    void *grown =
        reallocarray(ledger->apis, ledger->api_count + extent->count, sizeof(*ledger->apis));

    if (!grown) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    ledger->apis = grown;
    for (uint32_t record = 0; record < extent->count; record++) {
        char *name = ledger->apis[ledger->api_count];
        enum records_outcome outcome =
            records_copy(reader->fd, extent->offset + (uint64_t)record * GPULIMIT_API_BYTES,
                         GPULIMIT_API_BYTES, name);

        if (outcome != RECORDS_SETTLED) {
            return reader_fail_copy(reader, outcome);
        }
        name[GPULIMIT_API_BYTES] = '\0';
        ledger->api_count++;
    }
    return GPULIMIT_READER_OK;
}

static enum gpulimit_reader_status reader_read_apis(struct reader *reader,
                                                    struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;

    for (uint32_t number = 0; status == GPULIMIT_READER_OK && number < reader->header.extents_used;
         number++) {
        const struct gpulimit_extent *extent = &reader->header.extents[number];

        if (extent->section == GPULIMIT_SECTION_APIS && extent->count > 0) {
            status = reader_read_api_extent(reader, extent, ledger);
        }
    }
    return status;
}

static enum gpulimit_reader_status reader_check_entry(struct reader *reader, uint32_t place,
                                                      const struct gpulimit_ledger *ledger)
{
    if (GPULIMIT_PLACE_KIND(place) >= reader->header.kinds) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has an entry of kind %u",
                           GPULIMIT_PLACE_KIND(place));
    }
    if (GPULIMIT_PLACE_DEVICE(place) >= GPULIMIT_DEVICES) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has an entry on device %u",
                           GPULIMIT_PLACE_DEVICE(place));
    }
    if (GPULIMIT_PLACE_API(place) >= ledger->api_count) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                           "has an entry of API %u, which has no name", GPULIMIT_PLACE_API(place));
    }
    return GPULIMIT_READER_OK;
}

static enum gpulimit_reader_status reader_add_entry(struct reader *reader,
                                                    const struct gpulimit_entry *record,
                                                    struct gpulimit_ledger *ledger)
{
    struct gpulimit_ledger_entry *grown =
        reader_grow(ledger->entries, ledger->entry_count, sizeof(*ledger->entries));

    if (!grown) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    ledger->entries = grown;
    ledger->entries[ledger->entry_count++] = (struct gpulimit_ledger_entry){
        .address = record->address,
        .requested_bytes = record->requested_bytes,
        .committed_bytes = record->committed_bytes,
        .born_mono_ns = record->born_mono_ns,
        .owner = record->owner,
        .thread_id = record->thread_id,
        .site = record->site,
        .tag = record->tag,
        .stream = record->stream,
        .kind = GPULIMIT_PLACE_KIND(record->place),
        .device = GPULIMIT_PLACE_DEVICE(record->place),
        .api = GPULIMIT_PLACE_API(record->place),
    };
    return GPULIMIT_READER_OK;
}

static enum gpulimit_reader_status reader_take_entry(struct reader *reader, const void *bytes,
                                                     enum records_outcome outcome,
                                                     struct gpulimit_ledger *ledger)
{
    const struct gpulimit_entry *record = bytes;
    enum gpulimit_reader_status status;

    if (outcome == RECORDS_TORN) {
        ledger->entries_torn++;
    }
    /* One that moves is neither live nor free for long. */
    if (outcome != RECORDS_SETTLED || GPULIMIT_PLACE_KIND(record->place) == GPULIMIT_KIND_NONE) {
        return GPULIMIT_READER_OK;
    }
    status = reader_check_entry(reader, record->place, ledger);
    return status == GPULIMIT_READER_OK ? reader_add_entry(reader, record, ledger) : status;
}

enum gpulimit_reader_status reader_read_entries(struct reader *reader,
                                                struct gpulimit_ledger *ledger)
{
    const struct reader_run run = {.reader = reader,
                                   .ledger = ledger,
                                   .section = GPULIMIT_SECTION_ENTRIES,
                                   .record_bytes = sizeof(struct gpulimit_entry),
                                   .most = GPULIMIT_READER_ENTRIES_MAX,
                                   .take = reader_take_entry};
    enum gpulimit_reader_status status = reader_read_apis(reader, ledger);

    return status == GPULIMIT_READER_OK ? reader_read_records(&run) : status;
}

enum gpulimit_reader_status reader_place_entries(struct reader *reader,
                                                 struct gpulimit_ledger *ledger)
{
    for (uint32_t number = 0; number < ledger->entry_count; number++) {
        struct gpulimit_ledger_entry *entry = &ledger->entries[number];

        if (reader->places[entry->device] == READER_NO_PLACE) {
            return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                               "has an entry on device %u, which is not in use", entry->device);
        }
        entry->device = reader->places[entry->device];
    }
    return GPULIMIT_READER_OK;
}
