/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that knows what the program calls the phase it is in (tags.h), and the names
 * of streams: as numbers of texts in the ledger. See limit.h for threads and forks. The books are
 * locked meanwhile, so not by the caller. errno is left as it was.
 */
#ifndef SHIM_LIMIT_TAGS_H
#define SHIM_LIMIT_TAGS_H

#include <stdint.h>

/* The number of the thread's innermost tag; 0 if there is none, or one too many (sites.h). */
uint32_t limit_tag(void);

/* The number of a stream's name. stream: see queue.h; 0 none, and none is the answer. */
uint32_t limit_stream(uint64_t stream);

#endif
