/* SPDX-License-Identifier: MIT
 *
 * The verbs report and check of gpulimit-stat: find what they are about, then print it or judge it.
 */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_print.h"
#include "memory.h"
#include "record_file.h"
#include "report_print.h"
#include "snapshot.h"
#include "text.h"

enum { REPORT_OK = 0, REPORT_FAILED = 1, REPORT_UNREADABLE = 3 };

/* A pid may have had several processes: the one that lives, else the last. */
static const struct gpulimit_ledger *report_find_ledger(const struct snapshot *snapshot,
                                                        int32_t pid)
{
    const struct gpulimit_ledger *found = NULL;

    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        const struct gpulimit_ledger *ledger = snapshot->ledgers[i];
        bool is_live = ledger->state == GPULIMIT_STATE_LIVE;
        bool was_live = found && found->state == GPULIMIT_STATE_LIVE;

        if (view_is_pid(ledger, pid) &&
            (!found || is_live > was_live ||
             (is_live == was_live && ledger->created_time_ns > found->created_time_ns))) {
            found = ledger;
        }
    }
    return found;
}

/* REPORT_OK: *record is set, for record_drop. Otherwise the complaint has been printed. */
static int report_read_process(const struct options *options, int32_t pid, struct symbols *symbols,
                               struct record *record)
{
    struct snapshot_request request = {
        .folders = options->folders,
        .folder_count = options->folder_count,
        .uids = options->filter.uids,
        .uid_count = options->filter.uid_count,
        .parts = GPULIMIT_READER_ENTRIES | GPULIMIT_READER_HISTORY,
    };
    const struct gpulimit_ledger *ledger;
    struct snapshot snapshot;
    int status = REPORT_OK;

    snapshot_take(&request, &snapshot);
    ledger = report_find_ledger(&snapshot, pid);
    if (ledger) {
        record_from_ledger(ledger, symbols, record);
        record_filter(record, &options->filter);
    } else {
        warnings_print(&snapshot.warnings);
        fprintf(stderr,
                "gpulimit-stat: process %d has no ledger: it has not used CUDA under "
                "libgpulimit.so, or its ledger has been removed since\n",
                pid);
        status =
            snapshot.has_unreadable || snapshot.has_forbidden ? REPORT_UNREADABLE : REPORT_FAILED;
    }
    snapshot_drop(&snapshot);
    return status;
}

static void report_complain(const char *path, const char *reason)
{
    char *clean = memory_print("%s: %s", path, reason);
    char *safe = text_clean(clean, false);

    fprintf(stderr, "gpulimit-stat: %s\n", safe);
    free(safe);
    free(clean);
}

/* Likewise; a file that is of a refusal is none of a run. */
static int report_read_file(const struct options *options, const char *path, struct record *record)
{
    char reason[RECORD_REASON_BYTES];
    json_t *root = NULL;

    switch (record_file_read(path, record, &root, reason)) {
    case RECORD_RUN:
        record_filter(record, &options->filter);
        return REPORT_OK;
    case RECORD_REFUSAL:
        json_decref(root);
        report_complain(path, "is the report of a refusal, not of a run");
        break;
    case RECORD_UNREADABLE:
        report_complain(path, reason);
        break;
    }
    return REPORT_UNREADABLE;
}

static int report_print_one(const struct options *options, const struct record *record,
                            const struct emit_style *style)
{
    if (!options->is_json) {
        report_print_record(record, style);
        return REPORT_OK;
    }
    fflush(stdout);
    if (!report_print_json(record, STDOUT_FILENO)) {
        perror("gpulimit-stat: standard output");
        return REPORT_FAILED;
    }
    return REPORT_OK;
}

static int report_run_processes(const struct options *options, const struct emit_style *style)
{
    int worst = REPORT_OK;
    bool is_next = false;

    for (size_t i = 0; i < options->filter.pid_count; i++) {
        struct record record;
        int status = report_read_process(options, options->filter.pids[i], style->symbols, &record);

        if (status == REPORT_OK) {
            fputs(is_next ? "\n" : "", style->out);
            is_next = true;
            status = report_print_one(options, &record, style);
            record_drop(&record);
        }
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int report_run_diff(const struct options *options, const struct emit_style *style)
{
    struct record before;
    struct record after;
    int status = report_read_file(options, options->files[0], &before);

    if (status != REPORT_OK) {
        return status;
    }
    status = report_read_file(options, options->files[1], &after);
    if (status == REPORT_OK) {
        report_print_diff(&before, &after, style);
        record_drop(&after);
    }
    record_drop(&before);
    return status;
}

static void report_print_root(const struct options *options, json_t *root,
                              const struct emit_style *style)
{
    if (options->is_json) {
        json_dumpf(root, style->out, JSON_ENSURE_ASCII | JSON_INDENT(2));
        putc('\n', style->out);
    } else {
        report_print_refusal(root, style);
    }
}

static int report_run_file(const struct options *options, const struct emit_style *style)
{
    const char *path = options->files[0];
    char reason[RECORD_REASON_BYTES];
    struct record record;
    json_t *root = NULL;
    int status;

    switch (record_file_read(path, &record, &root, reason)) {
    case RECORD_RUN:
        record_filter(&record, &options->filter);
        status = report_print_one(options, &record, style);
        record_drop(&record);
        return status;
    case RECORD_REFUSAL:
        report_print_root(options, root, style);
        json_decref(root);
        return REPORT_OK;
    case RECORD_UNREADABLE:
        break;
    }
    report_complain(path, reason);
    return REPORT_UNREADABLE;
}

int report_run(const struct options *options, const struct emit_style *style)
{
    if (options->filter.pid_count > 0) {
        return report_run_processes(options, style);
    }
    return options->is_diff ? report_run_diff(options, style) : report_run_file(options, style);
}

static int report_judge(const struct options *options, const struct record *record,
                        const struct record *base, const struct emit_style *style)
{
    struct check check;
    int status;

    check_open(&options->check, record, base, &check);
    status = check.fails > 0 ? REPORT_FAILED : REPORT_OK;
    if (options->is_json) {
        check_print_json(&check, style->out);
    } else {
        check_print(&options->check, &check, style);
    }
    if (check.count == 0) {
        fputs("gpulimit-stat: that run has used no GPU, so there was nothing to check\n", stderr);
    }
    if (options->check.junit_path && !check_write_junit(&options->check, &check)) {
        report_complain(options->check.junit_path, strerror(errno));
        status = REPORT_FAILED;
    }
    check_close(&check);
    return status;
}

int report_run_check(const struct options *options, const struct emit_style *style)
{
    struct record record;
    struct record base = {0};
    const char *base_path = options->check.base_path;
    int status =
        options->filter.pid_count > 0
            ? report_read_process(options, options->filter.pids[0], style->symbols, &record)
            : report_read_file(options, options->files[0], &record);

    if (status != REPORT_OK) {
        return status;
    }
    if (base_path) {
        status = report_read_file(options, base_path, &base);
    }
    if (status == REPORT_OK) {
        status = report_judge(options, &record, base_path ? &base : NULL, style);
        record_drop(&base);
    }
    record_drop(&record);
    return status;
}
