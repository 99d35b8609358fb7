/* SPDX-License-Identifier: MIT
 *
 * All ledgers of some folders, read one after the other: what there is to show. What of it is
 * shown, and how, is decided elsewhere.
 */
#ifndef GPULIMIT_TOOLS_SNAPSHOT_H
#define GPULIMIT_TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpulimit/reader.h"
#include "warnings.h"

struct snapshot {
    struct gpulimit_ledger **ledgers;
    size_t ledger_count;
    uint64_t time_ns;    /* CLOCK_REALTIME when it was taken */
    bool has_unreadable; /* a ledger is damaged, of another version, or cannot be read */
    bool has_forbidden;  /* a ledger belongs to somebody who does not let us read it */
    bool has_missing_folder;
    struct warnings warnings;
};

/* Which files to read. */
struct snapshot_request {
    const char *const *folders;
    size_t folder_count;
    const uint32_t *uids; /* only files of these users; all if uid_count is 0 */
    size_t uid_count;
    unsigned int parts; /* enum gpulimit_reader_parts */
};

/* Reads every file gpulimit.* of the folders. Whatever cannot be read becomes a warning. */
void snapshot_take(const struct snapshot_request *request, struct snapshot *snapshot);

/* Frees what a snapshot holds. */
void snapshot_drop(struct snapshot *snapshot);

#endif
