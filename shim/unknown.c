/* SPDX-License-Identifier: MIT
 *
 * Tells new names from known ones, and keeps the first few: see unknown.h.
 */
#include "unknown.h"

#include "loaded.h" /* for loaded_is_name: strcmp may not work yet */

#include <stddef.h>

enum {
    UNKNOWN_NAME_BYTES = 56, /* the longest of the driver's has 53 */
    UNKNOWN_TRIES = 10000,   /* of waiting for a name that another thread is writing */
};

/* Padded with NULs and compared by words: a runtime looks some hundred names up as it starts.
 * Arrays, not pointers: these would have to be relocated at the start of every program. */
union unknown_name {
    char bytes[UNKNOWN_NAME_BYTES];
    uint64_t words[UNKNOWN_NAME_BYTES / sizeof(uint64_t)];
};

static const union unknown_name unknown_hooks[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) {#_symbol},
#include "gpulimit/tbl/hooks.def"
};

static const union unknown_name unknown_passed[] = {
#define PASS(_symbol, _reason, _text) {#_symbol},
#include "gpulimit/tbl/passthrough.def"
};

static const struct {
    char part[23];
    bool is_memory;
} unknown_parts[] = {
#define NAME(_part, _is_memory, _text) {_part, _is_memory},
#include "gpulimit/tbl/memory_names.def"
};

#define UNKNOWN_ROWS(_table) (sizeof(_table) / sizeof(_table)[0])

/* A slot goes from FREE to WRITING to DONE, and stays so for the life of the process. */
enum { UNKNOWN_FREE, UNKNOWN_WRITING, UNKNOWN_DONE };

static struct {
    int state;
    int is_told;
    char name[GPULIMIT_API_BYTES];
} unknown_slots[GPULIMIT_UNKNOWN_NAMES];

static struct gpulimit_header *unknown_header;
static void (*unknown_tell)(const char *name);

/* Whether a name begins with a part; if so, *rest is what follows. */
static bool unknown_begins(const char *name, const char *part, const char **rest)
{
    while (*part && *name == *part) {
        name++;
        part++;
    }
    *rest = name;
    return *part == '\0';
}

static bool unknown_contains(const char *name, const char *part)
{
    const char *rest;
    if (part[0] == 'c') /* "cu...": a name of the driver's has it at its beginning alone */
        return unknown_begins(name, part, &rest);
    while (*name && !(*name == *part && unknown_begins(name, part, &rest)))
        name++;
    return *name != '\0';
}

bool unknown_is_memory_looking(const char *name)
{
    for (size_t i = 0; i < UNKNOWN_ROWS(unknown_parts); i++) {
        if (unknown_contains(name, unknown_parts[i].part))
            return unknown_parts[i].is_memory;
    }
    return false;
}

static bool unknown_is_row(const union unknown_name rows[], size_t count,
                           const union unknown_name *name)
{
    for (size_t i = 0; i < count; i++) {
        size_t word = 0;
        while (word < UNKNOWN_ROWS(name->words) && rows[i].words[word] == name->words[word])
            word++;
        if (word == UNKNOWN_ROWS(name->words))
            return true;
    }
    return false;
}

bool unknown_is_known(const char *name)
{
    union unknown_name padded = {{0}};
    for (size_t i = 0; name[i]; i++) {
        if (i == UNKNOWN_NAME_BYTES)
            return false;
        padded.bytes[i] = name[i];
    }
    return unknown_is_row(unknown_hooks, UNKNOWN_ROWS(unknown_hooks), &padded) ||
           unknown_is_row(unknown_passed, UNKNOWN_ROWS(unknown_passed), &padded);
}

/* Whether the variants of a function have hooks: then all those of the tables have. */
static bool unknown_is_hooked(const char *name)
{
    const char *rest;
    for (size_t i = 0; i < UNKNOWN_ROWS(unknown_hooks); i++) {
        if (unknown_begins(unknown_hooks[i].bytes, name, &rest) && (*rest == '\0' || *rest == '_'))
            return true;
    }
    return false;
}

bool unknown_is_new(const char *name)
{
    /* A capital letter after "cu": not cudaMalloc, not cublasCreate. */
    return name && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z' &&
           unknown_is_memory_looking(name) && !unknown_is_known(name);
}

/* Enters one name in the ledger. Its first byte comes last, with release: a reader that sees a name
 * at all sees it whole. */
static void unknown_show(struct gpulimit_header *header, size_t slot)
{
    const char *name = unknown_slots[slot].name;
    char *place = header->unknown_names[slot];
    for (size_t i = 1; i < GPULIMIT_API_BYTES; i++)
        place[i] = name[i];
    __atomic_store_n(&place[0], name[0], __ATOMIC_RELEASE);
}

static void unknown_publish(size_t slot)
{
    struct gpulimit_header *header = __atomic_load_n(&unknown_header, __ATOMIC_SEQ_CST);
    void (*tell)(const char *) = __atomic_load_n(&unknown_tell, __ATOMIC_SEQ_CST);
    if (header)
        unknown_show(header, slot);
    if (tell && !__atomic_exchange_n(&unknown_slots[slot].is_told, 1, __ATOMIC_RELAXED))
        tell(unknown_slots[slot].name);
}

/* Whether the slot holds that name. Another thread that is writing it has some instructions to go;
 * one that has been stopped half-way is not waited for: the name may then come twice. */
static bool unknown_holds(size_t slot, const char *name)
{
    int state = UNKNOWN_WRITING;
    for (int i = 0; i < UNKNOWN_TRIES && state == UNKNOWN_WRITING; i++)
        state = __atomic_load_n(&unknown_slots[slot].state, __ATOMIC_ACQUIRE);
    return state == UNKNOWN_DONE && loaded_is_name(unknown_slots[slot].name, name);
}

static void unknown_keep(const char *name)
{
    for (size_t slot = 0; slot < GPULIMIT_UNKNOWN_NAMES; slot++) {
        int state = UNKNOWN_FREE;
        if (__atomic_compare_exchange_n(&unknown_slots[slot].state, &state, UNKNOWN_WRITING, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            for (size_t i = 0; name[i]; i++)
                unknown_slots[slot].name[i] = name[i];
            /* Pairs with the acquire in unknown_holds. Sequentially consistent, as are the loads in
             * unknown_publish and both in unknown_attach: of two threads, one there and one here,
             * at least one sees both the header and the name. */
            __atomic_store_n(&unknown_slots[slot].state, UNKNOWN_DONE, __ATOMIC_SEQ_CST);
            unknown_publish(slot);
            return;
        }
        if (unknown_holds(slot, name))
            return;
    }
}

/* Adds to a name, as far as it fits with a NUL behind it. Returns the new length. */
static size_t unknown_add(char name[GPULIMIT_API_BYTES], size_t length, const char *more)
{
    while (*more && length < GPULIMIT_API_BYTES - 1)
        name[length++] = *more++;
    name[length] = '\0';
    return length;
}

void unknown_note(const char *name)
{
    char kept[GPULIMIT_API_BYTES];
    unknown_add(kept, 0, name);
    unknown_keep(kept);
}

void unknown_note_answer(const char *name, int version)
{
    if (unknown_is_new(name)) {
        unknown_note(name);
    } else if (name && version > 0 && unknown_is_hooked(name)) {
        char digits[12], kept[GPULIMIT_API_BYTES];
        size_t first = sizeof digits - 1;
        digits[first] = '\0';
        for (; version > 0; version /= 10)
            digits[--first] = (char)('0' + version % 10);
        size_t length = unknown_add(kept, 0, name);
        length = unknown_add(kept, length, "@");
        unknown_add(kept, length, digits + first);
        unknown_keep(kept);
    }
}

void unknown_attach(struct gpulimit_header *header, void (*tell)(const char *name))
{
    __atomic_store_n(&unknown_tell, tell, __ATOMIC_SEQ_CST);
    __atomic_store_n(&unknown_header, header, __ATOMIC_SEQ_CST);
    for (size_t slot = 0; slot < GPULIMIT_UNKNOWN_NAMES; slot++) {
        if (__atomic_load_n(&unknown_slots[slot].state, __ATOMIC_SEQ_CST) == UNKNOWN_DONE)
            unknown_publish(slot);
    }
}
