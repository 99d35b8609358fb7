/* SPDX-License-Identifier: MIT
 *
 * The search of runtime.h. Mostly one object alone has the function, or the caller asks for one of
 * several by name (DT_NEEDED); only else is the loader asked. A call at the end of a function can
 * be made as a jump: then the return address is that of the caller's caller, whose own libraries
 * are looked through instead; with none among them, of several runtimes the first loaded is taken.
 *
 * What was found is kept in slots, by caller. A library can be unloaded and another one come to lie
 * in its place, so a slot is believed only as long as both ends are still the objects that they
 * were: at the same place, with the same name.
 */
#include "runtime.h"

#include "finder.h"
#include "listing.h"
#include "loaded.h"
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { RUNTIME_SLOTS = 256, RUNTIME_TRIES = 8 };

/* Written by one thread at a time, which makes turn odd meanwhile; whoever reads sees by it whether
 * the rest belongs together. A fork can leave a slot odd to the child: then it is never used. */
static struct runtime_slot {
    _Atomic uint64_t turn;
    _Atomic uint64_t key; /* of the caller's object and the function's number; 0: free */
    _Atomic uintptr_t function;
    _Atomic uint64_t home; /* of the object that has the function */
} runtime_slots[RUNTIME_SLOTS];

/* ---- objects, known again ---- */

static uint64_t runtime_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

static bool runtime_find_place(uintptr_t address, struct loaded_place *place)
{
    struct finder_object found;
    if (finder_find(address, &found)) {
        *place = (struct loaded_place){found.map->l_addr, found.map->l_ld, found.map->l_name};
        return true;
    }
    if (finder_is_there())
        return false;
    listing_lock();
    bool is_found = loaded_find_place(address, place);
    listing_unlock();
    return is_found;
}

/* A number that another object in the same place has not. Code made at run time is in none: 0. */
static uint64_t runtime_identify(uintptr_t address)
{
    struct loaded_place place;
    if (!runtime_find_place(address, &place))
        return 0;
    uint64_t hash = runtime_mix((uintptr_t)place.dynamic, place.base);
    for (size_t left = strlen(place.name); left > 0;) {
        uint64_t word = 0;
        size_t bytes = left < sizeof word ? left : sizeof word;
        memcpy(&word, place.name, bytes);
        hash = runtime_mix(hash, word);
        place.name += bytes;
        left -= bytes;
    }
    return hash;
}

/* ---- the slots ---- */

static struct runtime_slot *runtime_slot_at(uint64_t key, unsigned try)
{
    return &runtime_slots[(key + try) % RUNTIME_SLOTS];
}

static uintptr_t runtime_recall(uint64_t key)
{
    for (unsigned try = 0; try < RUNTIME_TRIES; try++) {
        struct runtime_slot *slot = runtime_slot_at(key, try);
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        uintptr_t function = atomic_load_explicit(&slot->function, memory_order_acquire);
        uint64_t home = atomic_load_explicit(&slot->home, memory_order_acquire);
        if (found == 0)
            return 0;
        if (found == key && turn % 2 == 0 &&
            turn == atomic_load_explicit(&slot->turn, memory_order_relaxed))
            return runtime_identify(function) == home ? function : 0;
    }
    return 0;
}

/* The key's own slot, else a free one, else the first. */
static struct runtime_slot *runtime_slot_for(uint64_t key)
{
    for (unsigned try = 0; try < RUNTIME_TRIES; try++) {
        struct runtime_slot *slot = runtime_slot_at(key, try);
        uint64_t found = atomic_load_explicit(&slot->key, memory_order_relaxed);
        if (found == key || found == 0)
            return slot;
    }
    return runtime_slot_at(key, 0);
}

/* Another thread may be writing there: then it is left out, and found out again. */
static void runtime_remember(uint64_t key, uintptr_t function)
{
    struct runtime_slot *slot = runtime_slot_for(key);
    uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_relaxed);
    if (turn % 2 == 1 || !atomic_compare_exchange_strong(&slot->turn, &turn, turn + 1))
        return;
    atomic_store_explicit(&slot->key, key, memory_order_release);
    atomic_store_explicit(&slot->function, function, memory_order_release);
    atomic_store_explicit(&slot->home, runtime_identify(function), memory_order_release);
    atomic_store_explicit(&slot->turn, turn + 2, memory_order_release);
}

/* ---- the search ---- */

struct runtime_search {
    const char *name;
    struct loaded_object caller;
    bool has_caller;
    unsigned count;          /* of objects that have the function */
    runtime_function needed; /* of the library that the caller asks for itself */
    runtime_function first;  /* of a runtime by its name, if there is one, else of whatever */
    bool is_runtime;         /* whether first is */
    bool has_others;         /* one without versions, as no runtime is: another tool's */
};

static bool runtime_visit(const struct loaded_object *object, void *argument)
{
    static const char stem[] = "libcudart";
    struct runtime_search *search = argument;
    runtime_function found = loaded_find_symbol(object, search->name);
    if (!found || loader_is_own((const void *)(uintptr_t)found))
        return false;
    bool is_runtime = object->soname && strncmp(object->soname, stem, sizeof stem - 1) == 0;
    search->count++;
    if (!search->first || (is_runtime && !search->is_runtime)) {
        search->first = found;
        search->is_runtime = is_runtime;
    }
    bool is_needed = search->has_caller && object->soname && !search->needed &&
                     loaded_needs(&search->caller, object->soname);
    if (is_needed)
        search->needed = found;
    else
        search->has_others |= !object->has_versions;
    return false;
}

static bool runtime_has_versions(const void *function)
{
    struct loaded_place place;
    struct loaded_object object;
    return runtime_find_place((uintptr_t)function, &place) && loaded_read_place(&place, &object) &&
           object.has_versions;
}

/* Asks the loader. What it says when it finds nothing must not be left to the program. */
static runtime_function runtime_ask(const struct runtime_search *search, const void *caller)
{
    const struct link_map *map = loader_map_of((const char *)caller - 1);
    loader_ready();
    void *found = NULL;
    if (search->needed) {
        /* Another tool's function comes before the runtime's, if it is in the global scope. */
        found = loader_dlsym(RTLD_NEXT, search->name);
        if (found && runtime_has_versions(found))
            found = NULL;
    } else {
        if (map && map->l_prev) /* the program's own scope is the global one */
            found = loader_dlsym((void *)(uintptr_t)map, search->name);
        if (!found)
            found = loader_dlsym(RTLD_NEXT, search->name);
    }
    (void)dlerror();
    if (!found || loader_is_own(found))
        return search->needed ? search->needed : search->first;
    return (runtime_function)(uintptr_t)found;
}

static runtime_function runtime_search(const char *name, const void *caller)
{
    struct runtime_search search = {.name = name};
    struct loaded_place place;
    search.has_caller = runtime_find_place((uintptr_t)caller - 1, &place) &&
                        loaded_read_place(&place, &search.caller);
    listing_lock();
    loaded_each(runtime_visit, &search);
    listing_unlock();
    if (search.count <= 1)
        return search.first;
    return search.needed && !search.has_others ? search.needed : runtime_ask(&search, caller);
}

runtime_function runtime_find(enum api api, const void *caller)
{
    uint64_t key = runtime_mix(runtime_identify((uintptr_t)caller - 1), api) | 1;
    runtime_function function = (runtime_function)runtime_recall(key);
    if (function)
        return function;
    int saved = errno;
    function = runtime_search(api_names[api], caller);
    if (function)
        runtime_remember(key, (uintptr_t)function);
    errno = saved;
    return function;
}
