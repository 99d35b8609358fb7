/* SPDX-License-Identifier: MIT
 *
 * All ledgers of some folders, read one after the other: what there is to show.
 */
#include "snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "memory.h"

static int snapshot_is_ledger_name(const struct dirent *entry)
{
    return strncmp(entry->d_name, GPULIMIT_REGION_PREFIX, strlen(GPULIMIT_REGION_PREFIX)) == 0;
}

/* In bytes, not by the locale: the order of output must not depend on who asks. */
static int snapshot_compare_names(const struct dirent **first, const struct dirent **second)
{
    return strcmp((*first)->d_name, (*second)->d_name);
}

static bool snapshot_wants_owner(const struct snapshot_request *request, const char *path)
{
    struct stat file;

    if (request->uid_count == 0) {
        return true;
    }
    if (lstat(path, &file) != 0) {
        return errno != ENOENT;
    }
    for (size_t i = 0; i < request->uid_count; i++) {
        if (request->uids[i] == file.st_uid) {
            return true;
        }
    }
    return false;
}

static void snapshot_add(struct snapshot *snapshot, const char *path, unsigned int parts)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger;
    enum gpulimit_reader_status status = gpulimit_reader_open(path, parts, reason, &ledger);

    switch (status) {
    case GPULIMIT_READER_OK:
        snapshot->ledgers = memory_grow(snapshot->ledgers, snapshot->ledger_count,
                                        sizeof(struct gpulimit_ledger *));
        snapshot->ledgers[snapshot->ledger_count++] = ledger;
        return;
    case GPULIMIT_READER_GONE:
    case GPULIMIT_READER_UNFINISHED:
        return; /* a moment earlier, or later, there would have been nothing to say either */
    case GPULIMIT_READER_FORBIDDEN:
        snapshot->has_forbidden = true;
        break;
    case GPULIMIT_READER_DAMAGED:
    case GPULIMIT_READER_VERSION:
    case GPULIMIT_READER_FAILED:
        snapshot->has_unreadable = true;
        break;
    }
    warnings_add(&snapshot->warnings, gpulimit_reader_status_name(status), path, "%s", reason);
}

static void snapshot_add_folder(struct snapshot *snapshot, const char *folder,
                                const struct snapshot_request *request)
{
    struct dirent **names;
    int count = scandir(folder, &names, snapshot_is_ledger_name, snapshot_compare_names);

    if (count < 0) {
        snapshot->has_missing_folder = true;
        warnings_add(&snapshot->warnings, "folder", folder, "cannot be opened: %s",
                     strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        char *path = memory_print("%s/%s", folder, names[i]->d_name);

        if (snapshot_wants_owner(request, path)) {
            snapshot_add(snapshot, path, request->parts);
        }
        free(path);
        free(names[i]);
    }
    free(names);
}

void snapshot_take(const struct snapshot_request *request, struct snapshot *snapshot)
{
    struct timespec now;

    *snapshot = (struct snapshot){0};
    for (size_t i = 0; i < request->folder_count; i++) {
        snapshot_add_folder(snapshot, request->folders[i], request);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    snapshot->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void snapshot_drop(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        gpulimit_reader_close(snapshot->ledgers[i]);
    }
    free(snapshot->ledgers);
    warnings_drop(&snapshot->warnings);
    *snapshot = (struct snapshot){0};
}
