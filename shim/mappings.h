/* SPDX-License-Identifier: MIT
 *
 * Who keeps memory of cuMemCreate alive. It stays while a handle or a mapping to it stays; handles
 * are counted (created, retained, imported), and the value of a released handle may be handed out
 * again while the old memory is still mapped. So an object here is a piece of memory, found by its
 * handle while it has one and by its mappings while it has some.
 *
 * No locking: the caller has a lock. A zero-initialised struct mappings is empty and valid.
 */
#ifndef SHIM_MAPPINGS_H
#define SHIM_MAPPINGS_H

#include "table.h"

#define MAPPINGS_NONE UINT32_MAX

struct mappings_object {
    uint64_t handle;
    uint32_t handles; /* references by handle */
    uint32_t maps;    /* mappings */
    uint32_t entry;   /* the caller's: the ledger's entry of this memory */
    uint32_t next_free;
    bool is_exported; /* the caller's, likewise below: under this descriptor, or -1 */
    int descriptor;
    uint64_t inode, filesystem;
    uint32_t holds; /* of the mappings, the ones that have no address */
};

struct mappings_range {
    uint64_t bytes;
    uint32_t object;
    uint32_t next_free;
};

struct mappings {
    struct table by_handle;  /* handle -> object number */
    struct table by_address; /* start of a mapping -> range number */
    struct mappings_object *objects;
    struct mappings_range *ranges;
    uint32_t objects_capacity, ranges_capacity;
    uint32_t objects_used, ranges_used;
    uint32_t free_object, free_range; /* number + 1 of the first free one, 0 if none */
    uint64_t
        steps; /* all addresses and sizes mapped, or-ed: its lowest bit set divides each of them */
    uint64_t longest_bytes; /* of all mappings so far: how far back one can begin */
};

/* Adds memory with one reference by its handle. Returns its number, MAPPINGS_NONE when there is no
 * room. handle is not 0 and not that of another object that still has it. */
uint32_t mappings_create(struct mappings *mappings, uint64_t handle, uint32_t entry);

/* Returns the number of the object that has this handle, or MAPPINGS_NONE. */
uint32_t mappings_find(const struct mappings *mappings, uint64_t handle);

/* Returns the number of the object mapped at an address, anywhere inside the mapping, or
 * MAPPINGS_NONE. */
uint32_t mappings_find_mapped(const struct mappings *mappings, uint64_t address);

/* One reference by handle more. An object that had none left has its handle again. */
bool mappings_retain(struct mappings *mappings, uint32_t object, uint64_t handle);

/* One reference by handle less. The object stays, without handle or mapping perhaps, until
 * mappings_reap. */
void mappings_release(struct mappings *mappings, uint32_t object);

/* One mapping more. Returns false when there is no room for it. */
bool mappings_map(struct mappings *mappings, uint32_t object, uint64_t address, uint64_t bytes);

/* Removes the first mapping that starts in [*at, end) and moves *at behind it. Returns the number
 * of its object, which has one mapping less, or MAPPINGS_NONE when the range holds no more. */
uint32_t mappings_unmap_next(struct mappings *mappings, uint64_t *at, uint64_t end);

/* One mapping more, or less, that has no address: into an array. */
void mappings_hold(struct mappings *mappings, uint32_t object);
void mappings_let_go(struct mappings *mappings, uint32_t object);

/* Removes an object that has neither handle nor mapping, and sets *dead to what it was. Returns
 * false if it still has. */
bool mappings_reap(struct mappings *mappings, uint32_t object, struct mappings_object *dead);

/* Gives the memory back and leaves an empty structure. */
void mappings_clear(struct mappings *mappings);

#endif
