/* SPDX-License-Identifier: MIT
 *
 * Numbers for the functions of hooks.def, and after them those of runtime.def, for entries and
 * messages. No cuda.h.
 */
#ifndef SHIM_API_H
#define SHIM_API_H

enum api {
#define HOOK(_symbol, _pfn, _room, _role, _text) API_##_symbol,
#include "gpulimit/tbl/hooks.def"
    API_HOOKS, /* how many are hooks: the next one has this number again */
    API_LAST_HOOK = API_HOOKS - 1,
#define RUNTIME(_symbol, _text) API_##_symbol,
#include "gpulimit/tbl/runtime.def"
    APIS
};

extern const char *const api_names[APIS];

#endif
