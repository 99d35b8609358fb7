/* SPDX-License-Identifier: MIT
 *
 * What the driver holds for a process and its ledger does not explain.
 */
#include "untracked.h"

#include <string.h>

#include "nvml.h"

enum { UNTRACKED_TRIES = 3 };

/* What the device's figure should be by the ledger as it is now. Summaries are read in
 * microseconds, long lists of allocations are not: so they are not read again. */
static bool untracked_read_again(const struct gpulimit_ledger *ledger,
                                 const struct gpulimit_ledger_device *device, uint64_t *bytes)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *now;
    bool is_found = false;

    if (gpulimit_reader_open(ledger->path, GPULIMIT_READER_SUMMARY, reason, &now) !=
        GPULIMIT_READER_OK) {
        return false;
    }
    for (uint32_t i = 0; i < now->device_count && !is_found; i++) {
        is_found = now->state == GPULIMIT_STATE_LIVE &&
                   now->devices[i].gpu_index == device->gpu_index &&
                   strcmp(now->devices[i].gpu_uuid, device->gpu_uuid) == 0;
        if (is_found) {
            *bytes = view_get_explained(&now->devices[i]);
        }
    }
    gpulimit_reader_close(now);
    return is_found;
}

bool untracked_measure(const struct gpulimit_ledger *ledger,
                       const struct gpulimit_ledger_device *device, int64_t *bytes)
{
    uint64_t before_bytes;

    if (!device || !view_is_comparable(ledger)) {
        return false;
    }
    before_bytes = view_get_explained(device);
    for (int tries = 0; tries < UNTRACKED_TRIES; tries++) {
        uint64_t figure_bytes;
        uint64_t after_bytes;

        if (!nvml_get_process_bytes(device->gpu_uuid, ledger->lock_pid, &figure_bytes) ||
            !untracked_read_again(ledger, device, &after_bytes)) {
            return false;
        }
        if (after_bytes == before_bytes) {
            *bytes = view_get_untracked(figure_bytes, after_bytes);
            return true;
        }
        before_bytes = after_bytes;
    }
    return false;
}

void untracked_fill(struct view *view)
{
    for (size_t i = 0; i < view->row_count; i++) {
        struct view_row *row = &view->rows[i];

        row->has_untracked = untracked_measure(row->ledger, row->device, &row->untracked_bytes);
    }
}
