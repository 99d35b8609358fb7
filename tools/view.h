/* SPDX-License-Identifier: MIT
 *
 * Decides what of a snapshot is shown, and in which order. Pure: it reads no file, asks no clock
 * and prints nothing, so that table and JSON show the same things.
 */
#ifndef GPULIMIT_TOOLS_VIEW_H
#define GPULIMIT_TOOLS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

struct view_filter {
    const int32_t *pids; /* empty lists let everything pass */
    size_t pid_count;
    const uint32_t *uids; /* owners of the ledger's file */
    size_t uid_count;
    const char *const *gpus; /* an index, or the beginning of a UUID */
    size_t gpu_count;
    bool has_ended; /* exited and stale processes too */
};

/* One device of one process. */
struct view_row {
    const struct gpulimit_ledger *ledger;
    const struct gpulimit_ledger_device *device; /* NULL: the process has used none yet */

    /* For whoever asks NVML to fill in; a view by itself knows nothing of it. */
    bool has_untracked;
    int64_t untracked_bytes; /* NVML's figure for the process less what is explained */
};

struct view {
    struct view_row *rows; /* by charged bytes, most first; then by pid and GPU */
    size_t row_count;
    const struct gpulimit_ledger **ledgers; /* those of the rows, in the order of their first row */
    size_t ledger_count;
    size_t ended_count; /* ledgers that would be shown too if the filter had has_ended */
    uint64_t time_ns;   /* the snapshot's */
};

/* Picks and sorts. The view points into the snapshot and dies with it. */
void view_open(const struct snapshot *snapshot, const struct view_filter *filter,
               struct view *view);
void view_close(struct view *view);

/* True if the filter lets this device of any process pass. */
bool view_has_gpu(const struct view_filter *filter, const struct gpulimit_ledger_device *device);

/* True if `pid` names this process: by its own namespace's number or, where it can be known, by
 * ours. */
bool view_is_pid(const struct gpulimit_ledger *ledger, int32_t pid);

/* What is shown although something about it is amiss: torn records, what the driver itself has
 * refused and, where allocations are shown, those that have no entry. */
void view_warn(const struct view *view, bool has_allocations, struct warnings *warnings);

/* Seconds since the process began to use CUDA, and since an allocation was made; 0 where the clock
 * was set back. */
uint64_t view_get_age(const struct view *view, const struct gpulimit_ledger *ledger);
uint64_t view_get_entry_age(const struct view *view, const struct gpulimit_ledger *ledger,
                            const struct gpulimit_ledger_entry *entry);

/* True if NVML may know the process by a number that we know too, and what is charged is to be what
 * the driver holds. */
bool view_is_comparable(const struct gpulimit_ledger *ledger);

/* What NVML's figure for the process should be: what is charged, less what that figure leaves out.
 */
uint64_t view_get_explained(const struct gpulimit_ledger_device *device);

/* The figure less what is explained; what is beyond 64 bits stays at their edge. */
int64_t view_get_untracked(uint64_t figure_bytes, uint64_t explained_bytes);

/* Per cent of the limit in use, rounded down: 100 means full. Only where there is a limit. */
unsigned int view_get_use(const struct gpulimit_ledger_device *device);

#endif
