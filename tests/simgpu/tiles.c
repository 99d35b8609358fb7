// SPDX-License-Identifier: MIT
//
// What lies in arrays; see tiles.h.

#include "tiles.h"

#include <stdlib.h>

struct tile {
    unsigned part, level, layer;
    uint64_t start[3], end[3];
    struct vmm_handle *handle;
    LIST_ENTRY(tile) of_array;
};

static struct tile tile_of(const CUarrayMapInfo *info)
{
    struct tile tile = {.part = info->subresourceType};

    if (tile.part == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
        tile.layer = info->subresource.miptail.layer;
        tile.start[0] = info->subresource.miptail.offset;
        tile.end[0] = tile.start[0] + info->subresource.miptail.size;
        return tile;
    }
    tile.level = info->subresource.sparseLevel.level;
    tile.layer = info->subresource.sparseLevel.layer;
    tile.start[0] = info->subresource.sparseLevel.offsetX;
    tile.start[1] = info->subresource.sparseLevel.offsetY;
    tile.start[2] = info->subresource.sparseLevel.offsetZ;
    tile.end[0] = tile.start[0] + info->subresource.sparseLevel.extentWidth;
    tile.end[1] = tile.start[1] + info->subresource.sparseLevel.extentHeight;
    tile.end[2] = tile.start[2] + info->subresource.sparseLevel.extentDepth;
    return tile;
}

static bool tile_covers(const struct tile *outer, const struct tile *inner)
{
    bool covers =
        outer->part == inner->part && outer->level == inner->level && outer->layer == inner->layer;

    for (unsigned i = 0; i < 3; i++)
        covers = covers && outer->start[i] <= inner->start[i] && outer->end[i] >= inner->end[i];
    return covers;
}

static void tile_end(struct tile *tile)
{
    LIST_REMOVE(tile, of_array);
    vmm_let_go(tile->handle, true);
    free(tile);
}

CUresult tiles_map(struct tile_list *tiles, const CUarrayMapInfo *info, struct vmm_handle *handle)
{
    struct tile *tile = malloc(sizeof *tile);

    if (!tile)
        return CUDA_ERROR_OUT_OF_MEMORY;
    vmm_hold(handle, true); /* first: the same memory may be there already */
    tiles_unmap(tiles, info);
    *tile = tile_of(info);
    tile->handle = handle;
    LIST_INSERT_HEAD(tiles, tile, of_array);
    return CUDA_SUCCESS;
}

void tiles_unmap(struct tile_list *tiles, const CUarrayMapInfo *info)
{
    struct tile out = tile_of(info), *tile = LIST_FIRST(tiles), *next;

    for (; tile; tile = next) {
        next = LIST_NEXT(tile, of_array);
        if (tile_covers(&out, tile))
            tile_end(tile);
    }
}

void tiles_end(struct tile_list *tiles)
{
    while (!LIST_EMPTY(tiles))
        tile_end(LIST_FIRST(tiles));
}
