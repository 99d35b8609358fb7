/* SPDX-License-Identifier: MIT
 *
 * Where work waits its turn: a stream of a context, by number, since the lower layers do not know
 * CUDA's handles.
 */
#ifndef SHIM_QUEUE_H
#define SHIM_QUEUE_H

#include <stdint.h>

/* The numbers of streams that are no handles: no handle is that low. */
#define QUEUE_EVERY_STREAM  UINT64_C(0) /* synchronised: all of the context */
#define QUEUE_LEGACY_STREAM UINT64_C(1)
#define QUEUE_THREAD_STREAM UINT64_C(2) /* there are several: none is known by this */

struct queue {
    uint64_t context, stream;
};

#endif
