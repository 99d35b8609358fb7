/* SPDX-License-Identifier: MIT
 *
 * The header of a ledger file: copies it and checks every figure in it that the rest of the reader
 * relies on. The extents, which it lists, are reader_entries.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "reader_parts.h"

enum {
    READER_HEADER_TRIES = 8,
    READER_CREATION_SECONDS = 5, /* more than creating a file takes on the most crowded machine */
};

/* The header is no record with a sequence number: it is written once, but for a few words at its
 * end. The magic and extents_used each vouch for what was stored before them, so both come from an
 * earlier copy than what they vouch for. */
enum gpulimit_reader_status reader_read_header(struct reader *reader)
{
    struct gpulimit_header *header = &reader->header;
    struct gpulimit_header earlier;
    enum records_outcome outcome = RECORDS_SETTLED;

    for (int tries = 0; tries < READER_HEADER_TRIES; tries++) {
        outcome = records_copy(reader->fd, 0, sizeof(earlier), &earlier);
        if (outcome == RECORDS_SETTLED) {
            outcome = records_copy(reader->fd, 0, sizeof(*header), header);
        }
        if (outcome != RECORDS_SETTLED || memcmp(&earlier, header, sizeof(earlier)) == 0) {
            break;
        }
    }
    if (outcome == RECORDS_FAILED) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: %s", strerror(errno));
    }
    if (outcome == RECORDS_SHORT) {
        memset(&earlier, 0, sizeof(earlier));
    }
    header->extents_used = earlier.extents_used;
    memcpy(header->magic, earlier.magic, sizeof(header->magic));
    return GPULIMIT_READER_OK;
}

/* No magic yet: either the writer is about to write it, or it died before. */
static enum gpulimit_reader_status reader_find_unfinished(struct reader *reader)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if ((fcntl(reader->fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) ||
        now.tv_sec - reader->file.st_mtim.tv_sec <= READER_CREATION_SECONDS) {
        return reader_fail(reader, GPULIMIT_READER_UNFINISHED, "is being created at this moment");
    }
    return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                       "is empty: its process died while creating it");
}

static enum gpulimit_reader_status reader_check_magic(struct reader *reader)
{
    static const char nothing[sizeof(reader->header.magic)];
    const struct gpulimit_header *header = &reader->header;
    long long size = (long long)reader->file.st_size;

    if (size > 0 && size < (long long)sizeof(*header)) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED,
                           "is too short for a ledger (%lld bytes)", size);
    }
    if (memcmp(header->magic, nothing, sizeof(header->magic)) == 0) {
        return reader_find_unfinished(reader);
    }
    if (memcmp(header->magic, GPULIMIT_REGION_MAGIC, sizeof(header->magic)) != 0) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "is not a ledger (no magic)");
    }
    return GPULIMIT_READER_OK;
}

/* The sizes of what lies in the file: those that this program was built with, or we misread it all.
 */
static enum gpulimit_reader_status reader_check_layout(struct reader *reader)
{
    const struct gpulimit_header *header = &reader->header;

    if (header->version != GPULIMIT_REGION_VERSION) {
        return reader_fail(reader, GPULIMIT_READER_VERSION,
                           "has format version %u; this program reads version %u", header->version,
                           GPULIMIT_REGION_VERSION);
    }
    /* A later writer of this version may have appended to the header; it may have moved nothing. */
    if (header->header_bytes < GPULIMIT_HEADER_BYTES_MIN ||
        header->header_bytes > GPULIMIT_DEVICES_OFFSET) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has a header of %u bytes",
                           header->header_bytes);
    }
    if (header->devices_offset != GPULIMIT_DEVICES_OFFSET ||
        header->device_bytes != sizeof(struct gpulimit_device)) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has device records of %u bytes at %u",
                           header->device_bytes, header->devices_offset);
    }
    if (header->entry_bytes != sizeof(struct gpulimit_entry)) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has entries of %u bytes",
                           header->entry_bytes);
    }
    return GPULIMIT_READER_OK;
}

enum gpulimit_reader_status reader_check_header(struct reader *reader)
{
    const struct gpulimit_header *header = &reader->header;
    enum gpulimit_reader_status status = reader_check_magic(reader);

    if (status == GPULIMIT_READER_OK) {
        status = reader_check_layout(reader);
    }
    if (status != GPULIMIT_READER_OK) {
        return status;
    }
    if (header->kinds < 2 || header->kinds > READER_KINDS_MAX) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has %u kinds of memory",
                           header->kinds);
    }
    if (header->command_bytes > sizeof(header->command)) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has a command of %u bytes",
                           header->command_bytes);
    }
    if (header->count_mode > GPULIMIT_COUNT_ALLOCATIONS) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has count mode %u",
                           header->count_mode);
    }
    if (header->pid <= 0) {
        return reader_fail(reader, GPULIMIT_READER_DAMAGED, "has pid %d", header->pid);
    }
    return GPULIMIT_READER_OK;
}
