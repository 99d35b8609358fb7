/* SPDX-License-Identifier: MIT
 *
 * Looks for the ledger of own_ledger.h.
 */
#include "preload.h"

#include "own_ledger.h"

#include <fcntl.h>
#include <unistd.h>

/* Opens it, once a process, as closing it would drop the library's lock on the file, which is this
 * process's: others would take it for a dead one's and clear it away. Returns -1 if there is none.
 */
static int own_file(void)
{
    static int kept = -1, of;
    char path[PRELOAD_PATH_BYTES];
    if (kept >= 0 && of == getpid())
        return kept;
    of = getpid();
    kept = preload_find_ledger(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return kept;
}

struct gpulimit_ledger *own_ledger(void)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger = NULL;
    int file = own_file();
    if (file < 0 || gpulimit_reader_read(file, "own", GPULIMIT_READER_HISTORY, reason, &ledger) !=
                        GPULIMIT_READER_OK)
        return NULL;
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
