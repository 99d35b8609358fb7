/* SPDX-License-Identifier: MIT
 *
 * Looks symbols up in one loaded object, by its own tables. For dlsym's own address (we override
 * dlsym, so we cannot ask it), and for the driver's functions without touching dlerror's state or
 * the loader's lock.
 *
 * Any thread, also inside dlsym and constructors. No memory is allocated.
 */
#ifndef SHIM_LOADED_H
#define SHIM_LOADED_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>

struct loaded_object {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Dyn) * dynamic;
    const char *soname; /* NULL: it has none */
    bool has_versions;  /* of symbols of its own */
};

/* Whether two names are the same. Not strcmp: a sanitizer's or another preloaded library's own may
 * call dlsym before it works itself. */
static inline bool loaded_is_name(const char *name, const char *other)
{
    while (*name && *name == *other) {
        name++;
        other++;
    }
    return *name == *other;
}

/* Finds an object that the program was started with, by the name it gives itself (DT_SONAME). Asks
 * nobody: those objects stand first in the loader's list, and stay. */
bool loaded_find_early(const char *soname, struct loaded_object *object);

/* Finds any loaded object, the first of that name. */
bool loaded_find_object(const char *soname, struct loaded_object *object);

/* Where an object lies and how the loader calls it (the main program: ""). It stands until the
 * object is unloaded. */
struct loaded_place {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
    const char *name;
};

/* Finds where the object is that an address lies in, by a look at all of them. */
bool loaded_find_place(uint64_t address, struct loaded_place *place);

/* Reads the object of a place. Returns false if it has no symbols. */
bool loaded_read_place(const struct loaded_place *place, struct loaded_object *object);

/* Whether an object itself asks for the library of that name (DT_NEEDED). */
bool loaded_needs(const struct loaded_object *object, const char *soname);

/* Returns the address of a function that the object defines and exports, whatever its version; NULL
 * if none. */
void (*loaded_find_symbol(const struct loaded_object *object, const char *name))(void);

/* The same for a variable. */
const void *loaded_find_data(const struct loaded_object *object, const char *name);

/* Shows every loaded object in the order of the look-up, the program first, until visit returns
 * true. */
void loaded_each(bool (*visit)(const struct loaded_object *object, void *argument), void *argument);

/* How many objects were ever loaded and unloaded: whether a look-up may now answer otherwise. */
struct loaded_counts {
    uint64_t added, removed;
};
struct loaded_counts loaded_count(void);

#endif
