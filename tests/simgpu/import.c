// SPDX-License-Identifier: MIT
//
// Imported memory; see import.h.

#include "import.h"

#include "address.h"
#include "process.h"

#include <stdlib.h>
#include <unistd.h>

#define IMPORT_MAGIC 0x74726f706d697367u

static LIST_HEAD(, import) imports = LIST_HEAD_INITIALIZER(imports);

struct import_note import_describe(const struct memory *memory, unsigned gpu)
{
    return (struct import_note){.magic = IMPORT_MAGIC,
                                .pid = (int)getpid(),
                                .gpu = gpu,
                                .start = memory->range.start,
                                .bytes = memory->range.end - memory->range.start};
}

bool import_is_note(const struct import_note *note)
{
    return note->magic == IMPORT_MAGIC && note->bytes;
}

static CUdevice import_ordinal(unsigned gpu)
{
    for (unsigned i = 0; i < process.visible; i++)
        if (process.gpus[i] == gpu)
            return (CUdevice)i;
    return 0;
}

struct import *import_open(enum import_kind kind, const struct import_note *note, const void *owner)
{
    uint64_t size = driver_round(note->bytes, DRIVER_BLOCK);
    struct import *import;

    LIST_FOREACH(import, &imports, of_process)
    if (import->kind == kind && kind != IMPORT_EXTERNAL && import->note.pid == note->pid &&
        import->note.start == note->start) {
        import->opens += kind == IMPORT_IPC;
        return import;
    }
    import = calloc(1, sizeof *import);
    if (!import)
        return NULL;
    uint64_t start = address_take(size, 0);
    import->memory = start ? memory_insert(MEMORY_IMPORTED, start, note->bytes) : NULL;
    if (!import->memory) {
        if (start)
            address_give(start, size);
        free(import);
        return NULL;
    }
    import->kind = kind;
    import->note = *note;
    import->owner = owner;
    import->opens = 1;
    import->memory->import = import;
    import->memory->ordinal = import_ordinal(note->gpu);
    LIST_INSERT_HEAD(&imports, import, of_process);
    return import;
}

void import_close(struct import *import)
{
    if (--import->opens)
        return;
    address_give(import->memory->range.start, driver_round(import->note.bytes, DRIVER_BLOCK));
    memory_remove(import->memory);
    LIST_REMOVE(import, of_process);
    free(import);
}

bool import_has_any(const void *owner)
{
    const struct import *import;

    LIST_FOREACH(import, &imports, of_process)
    if (import->owner == owner)
        return true;
    return false;
}
