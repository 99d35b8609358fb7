/* SPDX-License-Identifier: MIT
 *
 * Turns a ledger file into a struct gpulimit_ledger: opens it, copies identity and counters. The
 * header's checks are in reader_header.c, those of the extents in reader_extents.c, entries and API
 * names in reader_entries.c, call sites in reader_sites.c, the history in reader_history.c and
 * reader_rings.c, consistent copies in reader_records.c, the question whether the writer lives in
 * liveness.c.
 */
#include "gpulimit/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "liveness.h"
#include "reader_parts.h"

enum {
    READER_LIVE_REREADS = 2000, /* about 1 us each */
    READER_LIVE_PAUSES = 20,    /* 1 ms each */
    READER_PEAK_TRIES = 4,
};

static const struct {
    const char *name;
} reader_kinds[] = {
    {"none"},
#define KIND(_name, _NAME, _text) {#_name},
#include "gpulimit/tbl/kinds.def"
};

static const char *const reader_states[] = {
    [GPULIMIT_STATE_LIVE] = "live",
    [GPULIMIT_STATE_EXITED] = "exited",
    [GPULIMIT_STATE_STALE] = "stale",
};

static const char *const reader_statuses[] = {
    [GPULIMIT_READER_OK] = "ok",
    [GPULIMIT_READER_GONE] = "gone",
    [GPULIMIT_READER_FORBIDDEN] = "forbidden",
    [GPULIMIT_READER_UNFINISHED] = "unfinished",
    [GPULIMIT_READER_DAMAGED] = "damaged",
    [GPULIMIT_READER_VERSION] = "version",
    [GPULIMIT_READER_FAILED] = "failed",
};

const char *gpulimit_reader_kind_name(uint32_t kind)
{
    return kind < GPULIMIT_KINDS ? reader_kinds[kind].name : "unknown";
}

const char *gpulimit_reader_truth_name(enum gpulimit_truth truth)
{
    static const char *const names[GPULIMIT_TRUTHS] = {[GPULIMIT_TRUTH_OFF] = "off",
                                                       [GPULIMIT_TRUTH_NVML] = "nvml",
                                                       [GPULIMIT_TRUTH_DELTA] = "delta"};
    return names[truth];
}

const char *gpulimit_reader_state_name(enum gpulimit_state state)
{
    return reader_states[state];
}

const char *gpulimit_reader_status_name(enum gpulimit_reader_status status)
{
    return reader_statuses[status];
}

const char *gpulimit_reader_api_name(const struct gpulimit_ledger *ledger, uint32_t api)
{
    return api < ledger->api_count ? ledger->apis[api] : "";
}

/* A string of the file may fill its field without a NUL. */
static void reader_copy_text(char *text, const char *field, size_t field_bytes)
{
    size_t length = strnlen(field, field_bytes);

    memcpy(text, field, length);
    text[length] = '\0';
}

static void reader_copy_identity(const struct gpulimit_header *header,
                                 struct gpulimit_ledger *ledger)
{
    ledger->pid = header->pid;
    ledger->uid = header->uid;
    ledger->pid_namespace = header->pid_namespace;
    ledger->start_ticks = header->start_ticks;
    ledger->created_time_ns = header->created_time_ns;
    ledger->created_mono_ns = header->created_mono_ns;
    ledger->ended_time_ns = header->ended_time_ns;
    ledger->entries_unlisted = header->entries_unlisted;
    ledger->count_mode = (enum gpulimit_count_mode)header->count_mode;
    reader_copy_text(ledger->boot_id, header->boot_id, sizeof(header->boot_id));
    reader_copy_text(ledger->library_version, header->library_version,
                     sizeof(header->library_version));
    reader_copy_text(ledger->notebook, header->notebook, sizeof(header->notebook));
    reader_copy_text(ledger->slurm_job_id, header->slurm_job_id, sizeof(header->slurm_job_id));
    reader_copy_text(ledger->cgroup, header->cgroup, sizeof(header->cgroup));
    reader_copy_text(ledger->limit_text, header->limit_text, sizeof(header->limit_text));
    reader_copy_text(ledger->group, header->group, sizeof(header->group));
    for (size_t i = 0; i < GPULIMIT_UNKNOWN_NAMES; i++) {
        size_t end = offsetof(struct gpulimit_header, unknown_names[i + 1]);

        if (end <= header->header_bytes && header->unknown_names[i][0] != '\0') {
            reader_copy_text(ledger->unknown_names[ledger->unknown_count++],
                             header->unknown_names[i], GPULIMIT_API_BYTES);
        }
    }
}

/* The last argument has no NUL where the writer had to cut the command line. */
static enum gpulimit_reader_status reader_copy_command(struct reader *reader,
                                                       struct gpulimit_ledger *ledger)
{
    uint32_t bytes = reader->header.command_bytes;

    if (bytes == 0) {
        return GPULIMIT_READER_OK;
    }
    memcpy(ledger->command, reader->header.command, bytes);
    ledger->arguments = calloc(bytes, sizeof(*ledger->arguments));
    if (!ledger->arguments) {
        return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    for (uint32_t at = 0; at < bytes;) {
        const char *argument = ledger->command + at;

        ledger->arguments[ledger->argument_count++] = argument;
        at += (uint32_t)strlen(argument) + 1;
    }
    return GPULIMIT_READER_OK;
}

static void reader_copy_device(const struct gpulimit_device *record,
                               struct gpulimit_ledger_device *device)
{
    device->gpu_index = record->gpu_index;
    device->total_bytes = record->total_bytes;
    reader_copy_text(device->gpu_uuid, record->gpu_uuid, sizeof(record->gpu_uuid));
#define FIELD(_name, _type, _text) device->_name = record->_name;
#include "gpulimit/tbl/fields.def"
    for (size_t kind = 0; kind < READER_KINDS_MAX; kind++) {
        device->by_kind[kind].bytes = record->by_kind[kind].bytes;
        device->by_kind[kind].count = record->by_kind[kind].count;
    }
    device->truth_source = record->truth_source < GPULIMIT_TRUTHS
                               ? (enum gpulimit_truth)record->truth_source
                               : GPULIMIT_TRUTH_OFF;
    device->hidden_bytes = record->hidden_bytes;
    device->peak_mono_ns = record->peak_mono_ns;
    device->peak_overhead_bytes = record->peak_overhead_bytes;
    device->driver_denials = record->driver_denials;
    device->denied_bytes = record->denied_bytes;
    device->denied_mono_ns = record->denied_mono_ns;
    device->largest_bytes = record->largest_bytes;
}

static enum gpulimit_reader_status reader_read_devices(struct reader *reader,
                                                       struct gpulimit_ledger *ledger)
{
    struct gpulimit_device record;
    struct gpulimit_device scratch[2];

    ledger->device_count = 0;
    for (uint32_t number = 0; number < GPULIMIT_DEVICES; number++) {
        uint64_t offset = GPULIMIT_DEVICES_OFFSET + number * sizeof(record);
        enum records_outcome outcome =
            records_read(reader->fd, offset, sizeof(record), &reader->patience, scratch, &record);

        if (outcome == RECORDS_SHORT || outcome == RECORDS_FAILED) {
            return reader_fail_copy(reader, outcome);
        }
        reader->places[number] = READER_NO_PLACE;
        reader->peak_epochs[number] = record.peak_epoch;
        if (record.in_use != 0) {
            struct gpulimit_ledger_device *device = &ledger->devices[ledger->device_count];

            reader_copy_device(&record, device);
            device->is_torn = outcome == RECORDS_TORN;
            reader->places[number] = ledger->device_count++;
        }
    }
    return GPULIMIT_READER_OK;
}

/* The devices, and the tallies of what was live at their peaks. */
static enum gpulimit_reader_status reader_read_peaks(struct reader *reader,
                                                     struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = GPULIMIT_READER_OK;

    for (int tries = 0; status == GPULIMIT_READER_OK && tries < READER_PEAK_TRIES; tries++) {
        status = reader_read_devices(reader, ledger);
        if (status == GPULIMIT_READER_OK) {
            status = reader_read_tallies(reader, ledger);
        }
        if (status == GPULIMIT_READER_OK && !reader_has_new_peak(reader)) {
            break;
        }
    }
    return status;
}

static enum gpulimit_reader_status reader_read_history(struct reader *reader,
                                                       struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = reader_read_peaks(reader, ledger);

    if (status == GPULIMIT_READER_OK) {
        status = reader_read_timelines(reader, ledger);
    }
    return status == GPULIMIT_READER_OK ? reader_read_rings(reader, ledger) : status;
}

static enum gpulimit_reader_status reader_fill(struct reader *reader, unsigned int parts,
                                               struct gpulimit_ledger *ledger)
{
    enum gpulimit_reader_status status = reader_copy_command(reader, ledger);
    bool has_history = (parts & GPULIMIT_READER_HISTORY) != 0;
    bool has_entries = has_history || (parts & GPULIMIT_READER_ENTRIES) != 0;

    reader_copy_identity(&reader->header, ledger);
    ledger->owner_uid = reader->file.st_uid;
    liveness_find(reader->fd, ledger);
    if (ledger->state == GPULIMIT_STATE_LIVE) {
        /* Nobody mends what a dead writer left, so only a live one is waited for. */
        reader->patience = (struct records_patience){READER_LIVE_REREADS, READER_LIVE_PAUSES};
    }
    if (status == GPULIMIT_READER_OK) {
        status = reader_check_extents(reader);
    }
    if (status == GPULIMIT_READER_OK && has_entries) {
        status = reader_read_entries(reader, ledger);
    }
    /* After the entries: a device comes into use before its first entry does. */
    if (status == GPULIMIT_READER_OK) {
        status =
            has_history ? reader_read_history(reader, ledger) : reader_read_devices(reader, ledger);
    }
    if (status == GPULIMIT_READER_OK && has_entries) {
        status = reader_read_sites(reader, ledger);
    }
    if (status == GPULIMIT_READER_OK) {
        status = reader_place_entries(reader, ledger);
    }
    reader_check_history(ledger);
    return status;
}

enum gpulimit_reader_status gpulimit_reader_read(int fd, const char *path, unsigned int parts,
                                                 char reason[GPULIMIT_READER_REASON_BYTES],
                                                 struct gpulimit_ledger **ledger)
{
    struct reader reader = {.fd = fd, .reason = reason};
    struct gpulimit_ledger *filled;
    enum gpulimit_reader_status status;

    if (fstat(fd, &reader.file) == 0 && !S_ISREG(reader.file.st_mode)) {
        return reader_fail(&reader, GPULIMIT_READER_DAMAGED, "is not a regular file");
    }
    status = reader_read_header(&reader);
    if (status != GPULIMIT_READER_OK) {
        return status;
    }
    /* Asked again after the header was read: the file grows before the header says that it has. */
    if (fstat(fd, &reader.file) != 0) {
        return reader_fail(&reader, GPULIMIT_READER_FAILED, "cannot be read: %s", strerror(errno));
    }
    status = reader_check_header(&reader);
    if (status != GPULIMIT_READER_OK) {
        return status;
    }
    filled = calloc(1, sizeof(*filled));
    if (!filled || !(filled->path = strdup(path))) {
        free(filled);
        return reader_fail(&reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
    }
    status = reader_fill(&reader, parts, filled);
    if (status != GPULIMIT_READER_OK) {
        gpulimit_reader_close(filled);
        return status;
    }
    *ledger = filled;
    return GPULIMIT_READER_OK;
}

enum gpulimit_reader_status gpulimit_reader_open(const char *path, unsigned int parts,
                                                 char reason[GPULIMIT_READER_REASON_BYTES],
                                                 struct gpulimit_ledger **ledger)
{
    struct reader reader = {.reason = reason};
    enum gpulimit_reader_status status;
    /* O_NONBLOCK: a pipe of that name must not hold us up. It means nothing to a regular file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 && errno == ENOENT) {
        return reader_fail(&reader, GPULIMIT_READER_GONE, "does not exist");
    }
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        return reader_fail(&reader, GPULIMIT_READER_FORBIDDEN, "may not be read: %s",
                           strerror(errno));
    }
    if (fd < 0 && errno == ELOOP) {
        return reader_fail(&reader, GPULIMIT_READER_DAMAGED, "is a symbolic link");
    }
    if (fd < 0) {
        return reader_fail(&reader, GPULIMIT_READER_FAILED, "cannot be opened: %s",
                           strerror(errno));
    }
    status = gpulimit_reader_read(fd, path, parts, reason, ledger);
    close(fd);
    return status;
}

void gpulimit_reader_close(struct gpulimit_ledger *ledger)
{
    if (ledger) {
        free(ledger->path);
        free((void *)ledger->arguments);
        free(ledger->apis);
        free(ledger->entries);
        free(ledger->modules);
        free(ledger->texts);
        free(ledger->sites);
        free(ledger->tallies);
        free(ledger->events);
        free(ledger->marks);
        for (uint32_t i = 0; i < GPULIMIT_DEVICES; i++) {
            free(ledger->devices[i].samples);
        }
        free(ledger);
    }
}
