/* SPDX-License-Identifier: MIT
 *
 * Memory of cuMemCreate that outlives its handles: an exported descriptor, or a handle that this
 * process imported from itself, keeps it on the device (measured, driver 580.159). The driver does
 * not say which import is of whose memory, so exported memory stays charged, after its last handle
 * and mapping, while its descriptor is open in this process or while anything imported is held. A
 * descriptor passed to another process and closed here is that process's: nobody can see it from
 * here.
 *
 * See limit.h for threads and forks.
 */
#ifndef SHIM_LIMIT_EXPORTS_H
#define SHIM_LIMIT_EXPORTS_H

#include "limit.h"

/* The driver has exported a handle: as an open descriptor, or -1 for other kinds of export. */
void limit_handle_exported(uint64_t handle, int descriptor);

/* External memory was imported, or destroyed: it may be of ours too. */
void limit_external_imported(void);
void limit_external_destroyed(void);

/* Looks which exported memory is gone by now. */
void limit_look_at_exports(void);

#endif
