/* SPDX-License-Identifier: MIT
 *
 * Memory of cuMemCreate in arrays that have none of their own: in sparse ones box by box, in
 * deferred ones as a whole. It stays while it is there, whatever becomes of its handle. Called
 * under the driver's lock.
 */
#ifndef SIMGPU_TILES_H
#define SIMGPU_TILES_H

#include "vmm.h"

LIST_HEAD(tile_list, tile); /* empty when zeroed */

/* A map operation. Takes out what it covers as a whole, as an unmap operation does; what is covered
 * in part stays for both. 2: no memory. */
CUresult tiles_map(struct tile_list *tiles, const CUarrayMapInfo *info, struct vmm_handle *handle);
void tiles_unmap(struct tile_list *tiles, const CUarrayMapInfo *info);
void tiles_end(struct tile_list *tiles);

#endif
