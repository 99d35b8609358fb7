/* SPDX-License-Identifier: MIT
 *
 * Memory of cuMemCreate that lies in arrays: in sparse ones tile by tile, in deferred ones as a
 * whole. Two lists, searched from end to end: programs that do this have few such arrays, and the
 * driver's own call takes longer than a walk past thousands of pieces.
 *
 * No locking: the caller has a lock. A zero-initialised struct tiles is empty and valid.
 */
#ifndef SHIM_TILES_H
#define SHIM_TILES_H

#include "queue.h"

#include <stdbool.h>

/* A box of texels of one level and layer, or a stretch of a tail of small levels. */
struct tiles_region {
    uint32_t part; /* the driver's number for box or tail */
    uint32_t level, layer;
    uint64_t start[3], end[3];
};

/* An array without memory of its own. */
struct tiles_array {
    uint64_t handle;
    uint64_t owner;  /* its context */
    uint64_t serial; /* the caller's, likewise below */
    unsigned device;
    bool is_whole; /* has one region, whatever the program says */
};

/* What one operation has mapped. */
struct tiles_piece {
    struct tiles_region region;
    struct queue queue; /* where its mapping or unmapping is on its way */
    uint64_t moves;     /* serial of that; 0: it is done */
    bool is_leaving;
    uint64_t array;
    uint64_t owner; /* 0: unknown */
    uint64_t serial;
    unsigned device;
    uint32_t object; /* the caller's: the memory */
};

struct tiles {
    struct tiles_array *arrays;
    struct tiles_piece *pieces;
    uint32_t array_count, array_capacity;
    uint32_t piece_count, piece_capacity;
};

/* NULL: not known. Valid until the next change. */
const struct tiles_array *tiles_find_array(const struct tiles *tiles, uint64_t handle);

/* Return false when there is no room. */
bool tiles_add_array(struct tiles *tiles, const struct tiles_array *array);
bool tiles_add(struct tiles *tiles, const struct tiles_piece *piece);

/* The last one takes its place: walk downwards. tiles_remove returns the piece's object. */
void tiles_remove_array(struct tiles *tiles, uint32_t number);
uint32_t tiles_remove(struct tiles *tiles, uint32_t number);

bool tiles_covers(const struct tiles_region *outer, const struct tiles_region *inner);

/* Gives the memory back and leaves an empty structure. */
void tiles_clear(struct tiles *tiles);

#endif
