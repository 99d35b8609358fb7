/* SPDX-License-Identifier: MIT
 *
 * Decides what of a snapshot is shown, and in which order. Pure: it reads no file, asks no clock
 * and prints nothing.
 */
#include "view.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "memory.h"

bool view_is_pid(const struct gpulimit_ledger *ledger, int32_t pid)
{
    return ledger->pid == pid || (ledger->lock_pid != 0 && ledger->lock_pid == pid);
}

static bool view_has_pid(const struct view_filter *filter, const struct gpulimit_ledger *ledger)
{
    for (size_t i = 0; i < filter->pid_count; i++) {
        if (view_is_pid(ledger, filter->pids[i])) {
            return true;
        }
    }
    return filter->pid_count == 0;
}

static bool view_has_uid(const struct view_filter *filter, const struct gpulimit_ledger *ledger)
{
    for (size_t i = 0; i < filter->uid_count; i++) {
        if (ledger->owner_uid == filter->uids[i]) {
            return true;
        }
    }
    return filter->uid_count == 0;
}

/* Digits alone are an index; anything else the beginning of a UUID, whose "GPU-" may be left out.
 */
static bool view_is_gpu(const struct gpulimit_ledger_device *device, const char *name)
{
    const char *dash = strchr(device->gpu_uuid, '-');

    if (name[strspn(name, "0123456789")] == '\0') {
        return strtoul(name, NULL, 10) == device->gpu_index;
    }
    return strncasecmp(device->gpu_uuid, name, strlen(name)) == 0 ||
           (dash && strncasecmp(dash + 1, name, strlen(name)) == 0);
}

bool view_has_gpu(const struct view_filter *filter, const struct gpulimit_ledger_device *device)
{
    for (size_t i = 0; i < filter->gpu_count; i++) {
        if (device && view_is_gpu(device, filter->gpus[i])) {
            return true;
        }
    }
    return filter->gpu_count == 0;
}

static uint64_t view_get_charged(const struct view_row *row)
{
    return row->device ? row->device->charged_bytes : 0;
}

static int view_compare_rows(const void *first, const void *second)
{
    const struct view_row *a = first;
    const struct view_row *b = second;

    if (view_get_charged(a) != view_get_charged(b)) {
        return view_get_charged(a) > view_get_charged(b) ? -1 : 1;
    }
    if (a->ledger->pid != b->ledger->pid) {
        return a->ledger->pid < b->ledger->pid ? -1 : 1;
    }
    if (a->ledger != b->ledger) { /* a reused pid, or two namespaces */
        return strcmp(a->ledger->path, b->ledger->path);
    }
    return a->device < b->device ? -1 : 1;
}

static void view_add_row(struct view *view, const struct gpulimit_ledger *ledger,
                         const struct gpulimit_ledger_device *device)
{
    view->rows = memory_grow(view->rows, view->row_count, sizeof(*view->rows));
    view->rows[view->row_count++] = (struct view_row){.ledger = ledger, .device = device};
}

/* Returns the number of rows that the ledger got. */
static size_t view_add_rows(struct view *view, const struct gpulimit_ledger *ledger,
                            const struct view_filter *filter)
{
    size_t before = view->row_count;

    for (uint32_t i = 0; i < ledger->device_count; i++) {
        if (view_has_gpu(filter, &ledger->devices[i])) {
            view_add_row(view, ledger, &ledger->devices[i]);
        }
    }
    if (ledger->device_count == 0 && view_has_gpu(filter, NULL)) {
        view_add_row(view, ledger, NULL);
    }
    return view->row_count - before;
}

static bool view_has_ledger(const struct view *view, const struct gpulimit_ledger *ledger)
{
    for (size_t i = 0; i < view->ledger_count; i++) {
        if (view->ledgers[i] == ledger) {
            return true;
        }
    }
    return false;
}

void view_open(const struct snapshot *snapshot, const struct view_filter *filter, struct view *view)
{
    *view = (struct view){.time_ns = snapshot->time_ns};
    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        const struct gpulimit_ledger *ledger = snapshot->ledgers[i];
        size_t added;

        if (!view_has_pid(filter, ledger) || !view_has_uid(filter, ledger)) {
            continue;
        }
        added = view_add_rows(view, ledger, filter);
        if (added > 0 && !filter->has_ended && ledger->state != GPULIMIT_STATE_LIVE) {
            view->row_count -= added;
            view->ended_count++;
        }
    }
    if (view->row_count > 0) {
        qsort(view->rows, view->row_count, sizeof(*view->rows), view_compare_rows);
    }
    for (size_t i = 0; i < view->row_count; i++) {
        if (!view_has_ledger(view, view->rows[i].ledger)) {
            view->ledgers =
                memory_grow(view->ledgers, view->ledger_count, sizeof(struct gpulimit_ledger *));
            view->ledgers[view->ledger_count++] = view->rows[i].ledger;
        }
    }
}

void view_close(struct view *view)
{
    free(view->rows);
    free((void *)view->ledgers);
    *view = (struct view){0};
}

static void view_warn_of_device(const struct gpulimit_ledger *ledger,
                                const struct gpulimit_ledger_device *device,
                                struct warnings *warnings)
{
    if (device->is_torn) {
        warnings_add(warnings, "torn", ledger->path,
                     "has half-written counters for GPU %u: they may disagree with each other",
                     device->gpu_index);
    }
    if (device->driver_denials > 0) {
        warnings_add(warnings, "driver", NULL,
                     "process %d was refused %llu request%s on GPU %u by the driver itself, not by "
                     "the limit: the card is full, or was",
                     ledger->pid, (unsigned long long)device->driver_denials,
                     device->driver_denials == 1 ? "" : "s", device->gpu_index);
    }
}

void view_warn(const struct view *view, bool has_allocations, struct warnings *warnings)
{
    for (size_t i = 0; i < view->row_count; i++) {
        if (view->rows[i].device) {
            view_warn_of_device(view->rows[i].ledger, view->rows[i].device, warnings);
        }
    }
    for (size_t i = 0; has_allocations && i < view->ledger_count; i++) {
        const struct gpulimit_ledger *ledger = view->ledgers[i];

        if (ledger->entries_torn > 0) {
            warnings_add(warnings, "torn", ledger->path,
                         "has %u half-written entries, which are not shown", ledger->entries_torn);
        }
        if (ledger->entries_unlisted > 0) {
            warnings_add(
                warnings, "unlisted", ledger->path,
                "has no room for %llu live allocations of process %d: counted, but not listed",
                (unsigned long long)ledger->entries_unlisted, ledger->pid);
        }
    }
}

static uint64_t view_get_seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / 1000000000 : 0;
}

uint64_t view_get_age(const struct view *view, const struct gpulimit_ledger *ledger)
{
    return view_get_seconds(ledger->created_time_ns, view->time_ns);
}

/* The writer's monotonic clock may be another than ours (time namespaces), so only its difference
 * to the moment of creation is used. Unsigned wrap-around makes sums of nonsense harmless. */
uint64_t view_get_entry_age(const struct view *view, const struct gpulimit_ledger *ledger,
                            const struct gpulimit_ledger_entry *entry)
{
    uint64_t since_creation_ns = entry->born_mono_ns - ledger->created_mono_ns;

    return view_get_seconds(ledger->created_time_ns + since_creation_ns, view->time_ns);
}

bool view_is_comparable(const struct gpulimit_ledger *ledger)
{
    return ledger->state == GPULIMIT_STATE_LIVE && ledger->lock_pid > 0 &&
           ledger->count_mode == GPULIMIT_COUNT_PROCESS;
}

/* Half-written counters may have more hidden than charged. */
uint64_t view_get_explained(const struct gpulimit_ledger_device *device)
{
    return device->charged_bytes > device->hidden_bytes
               ? device->charged_bytes - device->hidden_bytes
               : 0;
}

int64_t view_get_untracked(uint64_t figure_bytes, uint64_t explained_bytes)
{
    bool is_negative = figure_bytes < explained_bytes;
    uint64_t size = is_negative ? explained_bytes - figure_bytes : figure_bytes - explained_bytes;
    int64_t bytes = size < INT64_MAX ? (int64_t)size : INT64_MAX;

    return is_negative ? -bytes : bytes;
}

unsigned int view_get_use(const struct gpulimit_ledger_device *device)
{
    enum { MOST = 999 };
    double use;

    if (device->limit_bytes == 0) {
        return 100;
    }
    use = 100.0 * (double)device->charged_bytes / (double)device->limit_bytes;
    return use < MOST ? (unsigned int)use : MOST;
}
