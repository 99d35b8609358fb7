/* SPDX-License-Identifier: MIT
 *
 * The lists of tiles.h.
 */
#include "tiles.h"

#include <stddef.h>

#include "grow.h"

const struct tiles_array *tiles_find_array(const struct tiles *tiles, uint64_t handle)
{
    for (uint32_t i = 0; i < tiles->array_count; i++) {
        if (tiles->arrays[i].handle == handle)
            return &tiles->arrays[i];
    }
    return NULL;
}

bool tiles_add_array(struct tiles *tiles, const struct tiles_array *array)
{
    if (tiles->array_count == tiles->array_capacity &&
        !grow_array((void **)&tiles->arrays, &tiles->array_capacity, sizeof *tiles->arrays))
        return false;
    tiles->arrays[tiles->array_count++] = *array;
    return true;
}

bool tiles_add(struct tiles *tiles, const struct tiles_piece *piece)
{
    if (tiles->piece_count == tiles->piece_capacity &&
        !grow_array((void **)&tiles->pieces, &tiles->piece_capacity, sizeof *tiles->pieces))
        return false;
    tiles->pieces[tiles->piece_count++] = *piece;
    return true;
}

void tiles_remove_array(struct tiles *tiles, uint32_t number)
{
    tiles->arrays[number] = tiles->arrays[--tiles->array_count];
}

uint32_t tiles_remove(struct tiles *tiles, uint32_t number)
{
    uint32_t object = tiles->pieces[number].object;
    tiles->pieces[number] = tiles->pieces[--tiles->piece_count];
    return object;
}

bool tiles_covers(const struct tiles_region *outer, const struct tiles_region *inner)
{
    if (outer->part != inner->part || outer->level != inner->level || outer->layer != inner->layer)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (outer->start[i] > inner->start[i] || outer->end[i] < inner->end[i])
            return false;
    }
    return true;
}

void tiles_clear(struct tiles *tiles)
{
    grow_release((void **)&tiles->arrays, &tiles->array_capacity, sizeof *tiles->arrays);
    grow_release((void **)&tiles->pieces, &tiles->piece_capacity, sizeof *tiles->pieces);
    *tiles = (struct tiles){0};
}
