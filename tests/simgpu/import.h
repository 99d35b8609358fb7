/* SPDX-License-Identifier: MIT
 *
 * Other processes' memory: addresses of ours for what somebody else pays. It takes nothing of a
 * device. That the exporter frees it goes unnoticed here. Called under the driver's lock.
 */
#ifndef SIMGPU_IMPORT_H
#define SIMGPU_IMPORT_H

#include "memory.h"

enum import_kind {
    IMPORT_IPC,      /* opened and closed, as often as opened; not to be freed */
    IMPORT_POOL,     /* a pointer out of an imported pool */
    IMPORT_EXTERNAL, /* a mapped buffer */
};

/* What travels between processes; fits in a CUipcMemHandle and in a CUmemPoolPtrExportData. */
struct import_note {
    uint64_t magic;
    int pid;
    unsigned gpu;
    uint64_t start, bytes; /* as the exporter knows it */
};

struct import {
    enum import_kind kind;
    struct import_note note;
    struct memory *memory;
    const void *owner; /* the pool, the external memory */
    unsigned opens;
    LIST_ENTRY(import) of_process;
};

struct import_note import_describe(const struct memory *memory, unsigned gpu);
bool import_is_note(const struct import_note *note);

/* The one that is open already, or a new one. NULL: no memory. */
struct import *import_open(enum import_kind kind, const struct import_note *note,
                           const void *owner);
void import_close(struct import *import); /* with its last opening, it goes */
bool import_has_any(const void *owner);

#endif
