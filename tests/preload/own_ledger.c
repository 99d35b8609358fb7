/* SPDX-License-Identifier: MIT
 *
 * Looks for the ledger of own_ledger.h.
 */
#include "own_ledger.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpulimit_ledger *own_ledger(void)
{
    char path[512], reason[GPULIMIT_READER_REASON_BYTES], prefix[64];
    struct gpulimit_ledger *ledger = NULL;
    DIR *folder = opendir(getenv("GPU_LIMIT_DIR"));
    snprintf(prefix, sizeof prefix, GPULIMIT_REGION_PREFIX "%d.", (int)getpid());
    for (struct dirent *file; folder && !ledger && (file = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s", getenv("GPU_LIMIT_DIR"), file->d_name);
        if (strncmp(file->d_name, prefix, strlen(prefix)) == 0 &&
            gpulimit_reader_open(path, GPULIMIT_READER_HISTORY, reason, &ledger) !=
                GPULIMIT_READER_OK)
            ledger = NULL;
    }
    if (folder)
        closedir(folder);
    return ledger;
}

const struct gpulimit_ledger_entry *own_entry(const struct gpulimit_ledger *ledger,
                                              uint64_t address)
{
    for (uint32_t i = 0; ledger && i < ledger->entry_count; i++) {
        if (ledger->entries[i].address == address)
            return &ledger->entries[i];
    }
    return NULL;
}
