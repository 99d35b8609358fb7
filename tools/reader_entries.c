/* SPDX-License-Identifier: MIT
 *
 * The extents of a ledger file: where they lie, the names of APIs in them, and the live
 * allocations. The rest of the file is reader.c's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader_parts.h"

enum { READER_CHUNK = 1024 }; /* entries copied at once: 64 KiB */

enum gpulimit_reader_status reader_fail(struct reader *reader, enum gpulimit_reader_status status,
                                        const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reader->reason, GPULIMIT_READER_REASON_BYTES, format, arguments);
    va_end(arguments);
    return status;
}

enum gpulimit_reader_status reader_fail_copy(struct reader *reader, enum records_outcome outcome)
{
    if (outcome == RECORDS_SHORT) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "is cut short");
    }
    return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: %s", strerror(errno));
}

/* Bytes of one record of a section; 1 for the sections of later writers, whose records we do not
 * know. */
static uint64_t reader_get_record_bytes(uint32_t section)
{
    switch (section) {
    case GPULIMIT_SECTION_APIS:
        return GPULIMIT_API_BYTES;
    case GPULIMIT_SECTION_ENTRIES:
        return sizeof(struct gpulimit_entry);
    case GPULIMIT_SECTION_MODULES:
        return sizeof(struct gpulimit_module);
    case GPULIMIT_SECTION_TEXTS:
        return GPULIMIT_TEXT_BYTES;
    case GPULIMIT_SECTION_SITES:
        return sizeof(struct gpulimit_site);
    default:
        return 1;
    }
}

static uint64_t reader_get_extent_end(const struct gpulimit_extent *extent)
{
    return extent->offset + extent->count * reader_get_record_bytes(extent->section);
}

/* Neither product nor sum can overflow: a count has 32 bits, an offset is no more than the file's
 * size. */
static bool reader_fits_file(const struct reader *reader, const struct gpulimit_extent *extent)
{
    return extent->offset >= GPULIMIT_EXTENTS_OFFSET && extent->offset % 8 == 0 &&
           extent->offset <= (uint64_t)reader->file.st_size &&
           reader_get_extent_end(extent) <= (uint64_t)reader->file.st_size;
}

static bool reader_has_overlap(const struct gpulimit_header *header, uint32_t number)
{
    const struct gpulimit_extent *extent = &header->extents[number];

    for (uint32_t earlier = 0; earlier < number; earlier++) {
        const struct gpulimit_extent *other = &header->extents[earlier];

        if (extent->offset < reader_get_extent_end(other) &&
            other->offset < reader_get_extent_end(extent)) {
            return true;
        }
    }
    return false;
}

enum gpulimit_reader_status reader_check_extents(struct reader *reader)
{
    const struct gpulimit_header *header = &reader->header;
    uint64_t entries = 0;
    uint64_t apis = 0;

    if (reader->file.st_size < (off_t)GPULIMIT_EXTENTS_OFFSET) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "is cut short");
    }
    if (header->extents_used > GPULIMIT_EXTENTS) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has %u extents", header->extents_used);
    }
    for (uint32_t number = 0; number < header->extents_used; number++) {
        const struct gpulimit_extent *extent = &header->extents[number];

        if (!reader_fits_file(reader, extent)) {
            return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                               "has extent %u (%u records at %llu) outside its %lld bytes", number,
                               extent->count, (unsigned long long)extent->offset,
                               (long long)reader->file.st_size);
        }
        if (reader_has_overlap(header, number)) {
            return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has extent %u on top of another",
                               number);
        }
        entries += extent->section == GPULIMIT_SECTION_ENTRIES ? extent->count : 0;
        apis += extent->section == GPULIMIT_SECTION_APIS ? extent->count : 0;
    }
    /* Holes cost a file no memory, but would cost us time and memory. */
    if (entries > GPULIMIT_READER_ENTRIES_MAX || apis > GPULIMIT_READER_APIS_MAX) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "claims %llu entries and %llu APIs",
                           (unsigned long long)entries, (unsigned long long)apis);
    }
    return GPULIMIT_READER_OK;
}

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

static enum gpulimit_reader_status reader_add_entry(struct reader *reader,
                                                    const struct gpulimit_entry *record,
                                                    struct gpulimit_ledger *ledger)
{
    uint32_t place = record->place;
    uint32_t kind = GPULIMIT_PLACE_KIND(place);
    uint32_t device = GPULIMIT_PLACE_DEVICE(place);

    if (kind == GPULIMIT_KIND_NONE) {
        return GPULIMIT_READER_OK;
    }
    if (kind >= reader->header.kinds) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has an entry of kind %u", kind);
    }
    if (device >= GPULIMIT_DEVICES) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has an entry on device %u", device);
    }
    if (GPULIMIT_PLACE_API(place) >= ledger->api_count) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                           "has an entry of API %u, which has no name", GPULIMIT_PLACE_API(place));
    }
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
        .kind = kind,
        .device = device,
        .api = GPULIMIT_PLACE_API(place),
    };
    return GPULIMIT_READER_OK;
}

/* Copies `count` slots at `offset` three times (why: reader_records.c), and alone those that moved.
 */
static enum gpulimit_reader_status reader_read_chunk(struct reader *reader, uint64_t offset,
                                                     uint32_t count, struct gpulimit_entry *copies,
                                                     struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;
    enum records_outcome outcome = RECORDS_SETTLED;

    for (size_t copy = 0; outcome == RECORDS_SETTLED && copy < 3; copy++) {
        outcome =
            records_copy(reader->fd, offset, count * sizeof(*copies), copies + copy * READER_CHUNK);
    }
    if (outcome != RECORDS_SETTLED) {
        return reader_fail_copy(reader, outcome);
    }
    for (uint32_t slot = 0; status == GPULIMIT_READER_OK && slot < count; slot++) {
        struct gpulimit_entry *record = copies + READER_CHUNK + slot;

        if (!records_are_settled(copies + slot, copies + 2 * READER_CHUNK + slot)) {
            struct gpulimit_entry scratch[2];

            outcome = records_read(reader->fd, offset + slot * sizeof(*record), sizeof(*record),
                                   &reader->patience, scratch, record);
        }
        if (outcome == RECORDS_SETTLED) {
            status = reader_add_entry(reader, record, ledger);
        } else if (outcome == RECORDS_TORN) {
            ledger->entries_torn++;
        } else if (outcome != RECORDS_MOVING) { /* that one is neither live nor free for long */
            status = reader_fail_copy(reader, outcome);
        }
        outcome = RECORDS_SETTLED;
    }
    return status;
}

/* Room for one chunk more, so that memory follows the live entries and not the slots that a file
 * claims. */
static bool reader_reserve_chunk(struct gpulimit_ledger *ledger, uint32_t *room)
{
    uint32_t wanted;
    void *grown;

    if (*room - ledger->entry_count >= READER_CHUNK) {
        return true;
    }
    wanted = *room + *room / 2 + READER_CHUNK;
    grown = reallocarray(ledger->entries, wanted, sizeof(*ledger->entries));
    if (!grown) {
        return false;
    }
    ledger->entries = grown;
    *room = wanted;
    return true;
}

static enum gpulimit_reader_status reader_read_entry_extent(struct reader *reader,
                                                            const struct gpulimit_extent *extent,
                                                            struct gpulimit_entry *copies,
                                                            uint32_t *room,
                                                            struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;

    for (uint32_t first = 0; status == GPULIMIT_READER_OK && first < extent->count;
         first += READER_CHUNK) {
        uint32_t left = extent->count - first;

        if (!reader_reserve_chunk(ledger, room)) {
            return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
        }
        status = reader_read_chunk(reader, extent->offset + first * sizeof(struct gpulimit_entry),
                                   left < READER_CHUNK ? left : READER_CHUNK, copies, ledger);
    }
    return status;
}

enum gpulimit_reader_status reader_read_entries(struct reader *reader,
                                                struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = reader_read_apis(reader, ledger);
    struct gpulimit_entry *copies = calloc(3 * (size_t)READER_CHUNK, sizeof(*copies));
    uint32_t room = 0;

    if (!copies) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (uint32_t number = 0; status == GPULIMIT_READER_OK && number < reader->header.extents_used;
         number++) {
        const struct gpulimit_extent *extent = &reader->header.extents[number];

        if (extent->section == GPULIMIT_SECTION_ENTRIES) {
            status = reader_read_entry_extent(reader, extent, copies, &room, ledger);
        }
    }
    free(copies);
    return status;
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
