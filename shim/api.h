/* SPDX-License-Identifier: MIT
 *
 * Numbers for the functions of hooks.def, for entries and messages. No cuda.h.
 */
#ifndef SHIM_API_H
#define SHIM_API_H

enum api {
#define HOOK(_symbol, _pfn, _room, _role, _text) API_##_symbol,
#include "gpulimit/tbl/hooks.def"
    APIS
};

extern const char *const api_names[APIS];

#endif
