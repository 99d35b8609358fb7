/* SPDX-License-Identifier: MIT
 *
 * Two arrays, objects and ranges, with free lists; two tables to find them by.
 */
#include "mappings.h"

#include "grow.h"

uint32_t mappings_create(struct mappings *mappings, uint64_t handle, uint32_t entry)
{
    uint32_t number;
    if (mappings->free_object) {
        number = mappings->free_object - 1;
    } else {
        if (mappings->objects_used == mappings->objects_capacity &&
            !grow_array((void **)&mappings->objects, &mappings->objects_capacity,
                        sizeof(struct mappings_object)))
            return MAPPINGS_NONE;
        number = mappings->objects_used;
    }
    if (!table_set(&mappings->by_handle, handle, number))
        return MAPPINGS_NONE;
    if (mappings->free_object)
        mappings->free_object = mappings->objects[number].next_free;
    else
        mappings->objects_used++;
    mappings->objects[number] =
        (struct mappings_object){.handle = handle, .handles = 1, .entry = entry};
    return number;
}

uint32_t mappings_find(const struct mappings *mappings, uint64_t handle)
{
    const uint64_t *number = table_find(&mappings->by_handle, handle);
    return number ? (uint32_t)*number : MAPPINGS_NONE;
}

/* All mappings start at multiples of this, whatever the granularity of the GPU. */
static uint64_t mappings_step(const struct mappings *mappings)
{
    return mappings->steps & -mappings->steps;
}

uint32_t mappings_find_mapped(const struct mappings *mappings, uint64_t address)
{
    uint64_t step = mappings_step(mappings);
    if (step == 0)
        return MAPPINGS_NONE;
    uint64_t start = address - address % step;
    for (; start != 0 && address - start < mappings->longest_bytes; start -= step) {
        const uint64_t *number = table_find(&mappings->by_address, start);
        if (!number)
            continue;
        const struct mappings_range *range = &mappings->ranges[*number];
        return address - start < range->bytes ? range->object : MAPPINGS_NONE;
    }
    return MAPPINGS_NONE;
}

bool mappings_retain(struct mappings *mappings, uint32_t object, uint64_t handle)
{
    if (mappings->objects[object].handles == 0 && !table_set(&mappings->by_handle, handle, object))
        return false;
    mappings->objects[object].handle = handle;
    mappings->objects[object].handles++;
    return true;
}

void mappings_release(struct mappings *mappings, uint32_t object)
{
    if (--mappings->objects[object].handles == 0)
        table_remove(&mappings->by_handle, mappings->objects[object].handle);
}

bool mappings_map(struct mappings *mappings, uint32_t object, uint64_t address, uint64_t bytes)
{
    uint32_t number;
    if (mappings->free_range) {
        number = mappings->free_range - 1;
    } else {
        if (mappings->ranges_used == mappings->ranges_capacity &&
            !grow_array((void **)&mappings->ranges, &mappings->ranges_capacity,
                        sizeof(struct mappings_range)))
            return false;
        number = mappings->ranges_used;
    }
    if (!table_set(&mappings->by_address, address, number))
        return false;
    if (mappings->free_range)
        mappings->free_range = mappings->ranges[number].next_free;
    else
        mappings->ranges_used++;
    mappings->ranges[number] = (struct mappings_range){.bytes = bytes, .object = object};
    mappings->objects[object].maps++;
    mappings->steps |= address | bytes;
    if (bytes > mappings->longest_bytes)
        mappings->longest_bytes = bytes;
    return true;
}

uint32_t mappings_unmap_next(struct mappings *mappings, uint64_t *at, uint64_t end)
{
    uint64_t step = mappings_step(mappings);
    if (step == 0)
        return MAPPINGS_NONE;
    for (uint64_t start = (*at + step - 1) / step * step; start < end; start += step) {
        const uint64_t *found = table_find(&mappings->by_address, start);
        if (!found)
            continue;
        uint32_t number = (uint32_t)*found;
        uint32_t object = mappings->ranges[number].object;
        table_remove(&mappings->by_address, start);
        mappings->ranges[number].next_free = mappings->free_range;
        mappings->free_range = number + 1;
        mappings->objects[object].maps--;
        *at = start + mappings->ranges[number].bytes;
        return object;
    }
    return MAPPINGS_NONE;
}

void mappings_hold(struct mappings *mappings, uint32_t object)
{
    mappings->objects[object].maps++;
    mappings->objects[object].holds++;
}

void mappings_let_go(struct mappings *mappings, uint32_t object)
{
    mappings->objects[object].maps--;
    mappings->objects[object].holds--;
}

bool mappings_reap(struct mappings *mappings, uint32_t object, struct mappings_object *dead)
{
    struct mappings_object *place = &mappings->objects[object];
    if (place->handles > 0 || place->maps > 0)
        return false;
    *dead = *place;
    place->next_free = mappings->free_object;
    mappings->free_object = object + 1;
    return true;
}

void mappings_clear(struct mappings *mappings)
{
    table_clear(&mappings->by_handle);
    table_clear(&mappings->by_address);
    grow_release((void **)&mappings->objects, &mappings->objects_capacity,
                 sizeof(struct mappings_object));
    grow_release((void **)&mappings->ranges, &mappings->ranges_capacity,
                 sizeof(struct mappings_range));
    *mappings = (struct mappings){0};
}
