/* SPDX-License-Identifier: MIT
 *
 * Report files of arbitrary bytes: each is refused with a reason or is a report that adds up. What
 * stands in for the engine where there is none is fuzz_report_main.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_record.h"
#include "record_file.h"
#include "report_print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_print_refusal(json_t *root)
{
    static FILE *nowhere;
    struct emit_style style = {.has_headings = true};

    nowhere = nowhere ? nowhere : fopen("/dev/null", "we");
    style.out = nowhere;
    report_print_refusal(root, &style);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reason[RECORD_REASON_BYTES] = "";
    json_error_t error;
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    struct record record;

    if (!root) {
        return 0;
    }
    if (record_file_parse(root, &record, reason)) {
        fuzz_check_record(&record);
        record_drop(&record);
    } else if (reason[0] == '\0') {
        fprintf(stderr, "fuzz_report: refused without a reason\n");
        abort();
    }
    fuzz_print_refusal(root);
    json_decref(root);
    return 0;
}
