/* SPDX-License-Identifier: MIT
 *
 * What holds of every report of a run, wherever it came from.
 */
#include "fuzz_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check_print.h"
#include "record_file.h"
#include "report_print.h"

static void fuzz_require(bool is_so, const char *what, const char *reason)
{
    if (!is_so) {
        fprintf(stderr, "fuzz_record: not so: %s %s\n", what, reason);
        abort();
    }
}

static void fuzz_check_holders(const struct report_holders *holders)
{
    uint64_t left = holders->bytes;

    fuzz_require(holders->site_count <= REPORT_SITES, "sites are bounded", "");
    for (unsigned int i = 0; i < holders->site_count; i++) {
        fuzz_require(holders->sites[i].bytes <= left, "no more than all is held", "");
        left -= holders->sites[i].bytes;
    }
    fuzz_require(holders->others_bytes <= left, "others hold no more than is left", "");
    left -= holders->others_bytes;
    fuzz_require(holders->overhead_bytes <= left, "overhead is no more than is left", "");
    fuzz_require(holders->idle_bytes == left - holders->overhead_bytes, "parts add up", "");
}

static void fuzz_write_and_read(const struct record *record)
{
    char reason[RECORD_REASON_BYTES] = "";
    int file = memfd_create("report", MFD_CLOEXEC);
    struct record again;
    json_error_t error;
    json_t *root;

    fuzz_require(file >= 0 && report_print_json(record, file) && lseek(file, 0, SEEK_SET) == 0,
                 "it is written", "");
    root = json_loadfd(file, JSON_REJECT_DUPLICATES, &error);
    fuzz_require(root != NULL, "it is JSON:", error.text);
    fuzz_require(record_file_parse(root, &again, reason), "it can be read:", reason);
    fuzz_require(again.device_count == record->device_count, "devices stay", "");
    record_drop(&again);
    json_decref(root);
    close(file);
}

static void fuzz_judge(const struct record *record, const struct emit_style *style)
{
    const struct check_request request = {.has_peak = true,
                                          .has_denials = true,
                                          .has_live = true,
                                          .base_path = "base.json",
                                          .tolerance = 5 * CHECK_PERCENT};
    struct check check;

    check_open(&request, record, record, &check);
    fuzz_require(check.count == 4 * record->device_count, "each is checked for each GPU", "");
    check_print(&request, &check, style);
    check_print_json(&check, style->out);
    check_close(&check);
}

void fuzz_check_record(const struct record *record)
{
    static FILE *nowhere;
    struct emit_style style = {.has_headings = true};

    for (size_t i = 0; i < record->device_count; i++) {
        fuzz_check_holders(&record->devices[i].figures.peak);
        fuzz_check_holders(&record->devices[i].figures.end);
    }
    fuzz_write_and_read(record);
    if (!nowhere) {
        nowhere = fopen("/dev/null", "we");
        fuzz_require(nowhere != NULL, "/dev/null opens", "");
    }
    style.out = nowhere;
    report_print_record(record, &style);
    report_print_diff(record, record, &style);
    fuzz_judge(record, &style);
}
