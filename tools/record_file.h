/* SPDX-License-Identifier: MIT
 *
 * Report files, read strictly: the end of a run (gpulimit.report/1) or a refusal (gpulimit.oom/1).
 * A file may come from anywhere; what is not as it should be is refused, with the reason.
 */
#ifndef GPULIMIT_TOOLS_RECORD_FILE_H
#define GPULIMIT_TOOLS_RECORD_FILE_H

#include <jansson.h>

#include "record.h"

#define RECORD_REASON_BYTES 160

enum record_kind {
    RECORD_UNREADABLE, /* `reason` says why */
    RECORD_RUN,        /* *record is set, and for record_drop */
    RECORD_REFUSAL,    /* *root is set: an object of schema gpulimit.oom/1; for json_decref */
};

/* `path` "-" is standard input. */
enum record_kind record_file_read(const char *path, struct record *record, json_t **root,
                                  char reason[RECORD_REASON_BYTES]);

/* The same from a document: false with a reason if it is no report of a run. */
bool record_file_parse(json_t *root, struct record *record, char reason[RECORD_REASON_BYTES]);

#endif
