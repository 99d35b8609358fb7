/* SPDX-License-Identifier: MIT
 *
 * The names of NVTX ranges, however a program gives them: wide strings as UTF-8, and strings that
 * were registered once and go by a handle from then on.
 *
 * Any thread. A fork's child keeps what was registered. No CUDA, no locks.
 */
#ifndef SHIM_NVTX_NAMES_H
#define SHIM_NVTX_NAMES_H

#include "gpulimit/region.h"

#include <wchar.h>

enum { NVTX_NAMES_MOST = 4096 };

/* Writes a wide string as UTF-8; what does not fit is cut off. NULL makes "". */
void nvtx_narrow(char name[GPULIMIT_TEXT_BYTES], const wchar_t *wide);

/* Copies a name and returns its handle; NULL if there is no room for more. */
const void *nvtx_register(const char *name);

/* The name of a handle; NULL if it is none. */
const char *nvtx_registered(const void *handle);

#endif
