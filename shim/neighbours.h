/* SPDX-License-Identifier: MIT
 *
 * Who else holds memory of a GPU, as the ledgers of other processes in the same folder tell. For
 * messages and reports: what is in those files is anybody's, and is checked; the work is bounded.
 *
 * Any thread, with no lock held: it reads files. No malloc. errno is left as it was.
 */
#ifndef SHIM_NEIGHBOURS_H
#define SHIM_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

enum { NEIGHBOURS_NAMED = 16, NEIGHBOURS_COMMAND_BYTES = 64 };

struct neighbour {
    int pid; /* as we number it; the process's own number where the kernel cannot tell */
    unsigned uid;
    uint64_t bytes; /* what the driver holds for it, by its ledger: committed and overhead */
    char command[NEIGHBOURS_COMMAND_BYTES]; /* "python train.py", without control characters */
};

struct neighbours {
    struct neighbour named[NEIGHBOURS_NAMED]; /* the largest first */
    unsigned named_count;
    uint64_t others, others_bytes; /* those that found no place above */
    bool is_complete;              /* no ledger is left out that can be one of a live process */
};

/* Looks through the folder `dir` for live processes that hold something on the GPU of a UUID, of
 * which the first four characters ("GPU-", "MIG-") are not compared. own_path: this process's own
 * ledger, "" if it has none; it is never opened, as closing it would drop the lock that says that
 * we live. */
void neighbours_find(struct neighbours *found, const char *dir, const char *own_path,
                     const char *uuid);

#endif
