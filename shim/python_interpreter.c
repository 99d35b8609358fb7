/* SPDX-License-Identifier: MIT
 *
 * The search of python_interpreter.h. It is done again only when libraries came (if there was no
 * interpreter) or went (if there was one: it may be the one that went). What was found is kept in
 * slots that are written once, so nobody waits: threads that search at once find the same.
 */
#include "python_interpreter.h"

#include "listing.h"
#include "loaded.h"

#include <string.h>

enum { INTERPRETER_SLOTS = 8, INTERPRETER_NONE = INTERPRETER_SLOTS };

static struct interpreter_slot {
    struct python_interpreter interpreter;
    _Atomic bool is_written;
    _Atomic int trust;
} interpreter_slots[INTERPRETER_SLOTS];
static _Atomic unsigned interpreter_slots_used;

/* Who is there | the count of loads or unloads that this was seen at << 8; 0 is never. */
static _Atomic uint64_t interpreter_seen;

enum interpreter_symbol {
    SYMBOL_OWN_THREAD,
    SYMBOL_VERSION,
    SYMBOL_FINALIZING,
    SYMBOL_FINALIZING_OLD,
    SYMBOL_FUNCTIONS,
    SYMBOL_RUNTIME = SYMBOL_FUNCTIONS,
    SYMBOL_CODE_TYPE,
    SYMBOL_TEXT_TYPE,
    SYMBOL_BYTES_TYPE,
    SYMBOLS
};

static const char *const interpreter_names[SYMBOLS] = {
    [SYMBOL_OWN_THREAD] = "PyGILState_GetThisThreadState",
    [SYMBOL_VERSION] = "Py_GetVersion",
    [SYMBOL_FINALIZING] = "Py_IsFinalizing",
    [SYMBOL_FINALIZING_OLD] = "_Py_IsFinalizing", /* before 3.13 */
    [SYMBOL_RUNTIME] = "_PyRuntime",
    [SYMBOL_CODE_TYPE] = "PyCode_Type",
    [SYMBOL_TEXT_TYPE] = "PyUnicode_Type",
    [SYMBOL_BYTES_TYPE] = "PyBytes_Type",
};

struct interpreter_symbols {
    union {
        void (*function)(void);
        const void *data;
    } at[SYMBOLS];
};

/* Each symbol in the first object that has it, as the loader does: a program may hold a library's
 * variables itself (copy relocation), with the library's functions elsewhere. */
static bool interpreter_visit(const struct loaded_object *object, void *argument)
{
    struct interpreter_symbols *symbols = argument;
    for (unsigned i = 0; i < SYMBOL_FUNCTIONS; i++) {
        if (!symbols->at[i].function)
            symbols->at[i].function = loaded_find_symbol(object, interpreter_names[i]);
    }
    for (unsigned i = SYMBOL_FUNCTIONS; i < SYMBOLS; i++) {
        if (!symbols->at[i].data)
            symbols->at[i].data = loaded_find_data(object, interpreter_names[i]);
    }
    return false;
}

static bool interpreter_search(struct python_interpreter *found)
{
    struct interpreter_symbols symbols = {0};
    loaded_each(interpreter_visit, &symbols);
    if (!symbols.at[SYMBOL_FINALIZING].function)
        symbols.at[SYMBOL_FINALIZING] = symbols.at[SYMBOL_FINALIZING_OLD];
    if (!symbols.at[SYMBOL_OWN_THREAD].function || !symbols.at[SYMBOL_VERSION].function ||
        !symbols.at[SYMBOL_FINALIZING].function)
        return false;
    for (unsigned i = SYMBOL_FUNCTIONS; i < SYMBOLS; i++) {
        if (!symbols.at[i].data)
            return false;
    }
    const char *(*version)(void) = (const char *(*)(void))symbols.at[SYMBOL_VERSION].function;
    memset(found, 0, sizeof(*found)); /* to be compared as bytes */
    found->own_thread = (const void *(*)(void))symbols.at[SYMBOL_OWN_THREAD].function;
    found->is_finalizing = (int (*)(void))symbols.at[SYMBOL_FINALIZING].function;
    found->code_type = symbols.at[SYMBOL_CODE_TYPE].data;
    found->text_type = symbols.at[SYMBOL_TEXT_TYPE].data;
    found->bytes_type = symbols.at[SYMBOL_BYTES_TYPE].data;
    return python_layouts_find(version(), symbols.at[SYMBOL_RUNTIME].data, &found->layout);
}

/* Returns the slot that holds it, a new one if none does; INTERPRETER_NONE if they are used up, by
 * a program that loads many interpreters. */
static unsigned interpreter_keep(const struct python_interpreter *found)
{
    unsigned used = atomic_load_explicit(&interpreter_slots_used, memory_order_relaxed);
    for (unsigned slot = 0; slot < used; slot++) {
        struct interpreter_slot *at = &interpreter_slots[slot];
        if (atomic_load_explicit(&at->is_written, memory_order_acquire) &&
            memcmp(&at->interpreter, found, sizeof(*found)) == 0)
            return slot;
    }
    while (used < INTERPRETER_SLOTS) {
        if (atomic_compare_exchange_weak(&interpreter_slots_used, &used, used + 1)) {
            interpreter_slots[used].interpreter = *found;
            atomic_store_explicit(&interpreter_slots[used].is_written, true, memory_order_release);
            return used;
        }
    }
    return INTERPRETER_NONE;
}

const struct python_interpreter *python_interpreter_find(_Atomic int **trust)
{
    listing_lock();
    struct loaded_counts counts = loaded_count();
    uint64_t seen = atomic_load_explicit(&interpreter_seen, memory_order_acquire);
    unsigned slot = (unsigned)(seen & 0xff);
    uint64_t count = slot == INTERPRETER_NONE ? counts.added : counts.removed;
    if (!seen || seen >> 8 != count + 1) {
        struct python_interpreter found;
        slot = interpreter_search(&found) ? interpreter_keep(&found) : INTERPRETER_NONE;
        count = slot == INTERPRETER_NONE ? counts.added : counts.removed;
        atomic_store_explicit(&interpreter_seen, (count + 1) << 8 | slot, memory_order_release);
    }
    listing_unlock();
    if (slot == INTERPRETER_NONE)
        return NULL;
    *trust = &interpreter_slots[slot].trust;
    return &interpreter_slots[slot].interpreter;
}
