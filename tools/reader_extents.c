/* SPDX-License-Identifier: MIT
 *
 * The extents of a ledger file: where they lie, and how records that their writer may be changing
 * are copied out of them. What the records mean is known to reader_entries.c, reader_sites.c and
 * reader_history.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader_parts.h"

enum { READER_CHUNK_BYTES = 65536 }; /* copied at once */

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
    case GPULIMIT_SECTION_TALLIES:
        return sizeof(struct gpulimit_tally);
    case GPULIMIT_SECTION_TIMELINES:
        return sizeof(struct gpulimit_timeline);
    case GPULIMIT_SECTION_EVENTS:
        return sizeof(struct gpulimit_event);
    case GPULIMIT_SECTION_MARKS:
        return sizeof(struct gpulimit_mark);
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

void *reader_grow(void *array, uint32_t count, size_t size)
{
    enum { FIRST = 64 };

    if (count > 0 && (count < FIRST || (count & (count - 1)) != 0)) {
        return array;
    }
    return reallocarray(array, count < FIRST ? FIRST : 2 * (size_t)count, size);
}

/* Copies `count` records at `offset` three times (why: reader_records.c), and alone those that
 * moved. */
static enum gpulimit_reader_status reader_read_chunk(const struct reader_run *run, uint64_t offset,
                                                     uint32_t count, char *copies)
{
    struct reader *reader = run->reader;
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;
    enum records_outcome outcome = RECORDS_SETTLED;
    char *scratch = copies + 3 * (size_t)READER_CHUNK_BYTES;

    for (size_t copy = 0; outcome == RECORDS_SETTLED && copy < 3; copy++) {
        outcome = records_copy(reader->fd, offset, count * run->record_bytes,
                               copies + copy * READER_CHUNK_BYTES);
    }
    if (outcome != RECORDS_SETTLED) {
        return reader_fail_copy(reader, outcome);
    }
    for (uint32_t number = 0; status == GPULIMIT_READER_OK && number < count; number++) {
        char *first = copies + number * run->record_bytes;
        char *record = first + READER_CHUNK_BYTES;

        outcome = RECORDS_SETTLED;
        if (!records_are_settled(first, record + READER_CHUNK_BYTES)) {
            outcome = records_read(reader->fd, offset + number * run->record_bytes,
                                   run->record_bytes, &reader->patience, scratch, record);
        }
        status = outcome == RECORDS_SHORT || outcome == RECORDS_FAILED
                     ? reader_fail_copy(reader, outcome)
                     : run->take(reader, record, outcome, run->ledger);
    }
    return status;
}

/* The first `most` records of the extent. */
static enum gpulimit_reader_status reader_read_extent(const struct reader_run *run,
                                                      const struct gpulimit_extent *extent,
                                                      uint32_t most, char *copies)
{
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;
    uint32_t at_once = (uint32_t)(READER_CHUNK_BYTES / run->record_bytes);

    for (uint32_t first = 0; status == GPULIMIT_READER_OK && first < most; first += at_once) {
        uint32_t left = most - first;

        status = reader_read_chunk(run, extent->offset + first * run->record_bytes,
                                   left < at_once ? left : at_once, copies);
    }
    return status;
}

enum gpulimit_reader_status reader_read_records(const struct reader_run *run)
{
    const struct gpulimit_header *header = &run->reader->header;
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;
    uint32_t left = run->most;
    /* Room for a chunk three times, and for a record twice. */
    char *copies = malloc(3 * (size_t)READER_CHUNK_BYTES + 2 * run->record_bytes);

    if (!copies) {
        return reader_fail(run->reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (uint32_t number = 0; status == GPULIMIT_READER_OK && number < header->extents_used;
         number++) {
        const struct gpulimit_extent *extent = &header->extents[number];
        uint32_t wanted = extent->count < left ? extent->count : left;

        if (extent->section == run->section) {
            status = reader_read_extent(run, extent, wanted, copies);
            left -= wanted;
        }
    }
    free(copies);
    return status;
}
