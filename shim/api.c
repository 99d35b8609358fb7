/* SPDX-License-Identifier: MIT
 *
 * The names behind api.h.
 */
#include "api.h"

const char *const api_names[APIS] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) #_symbol,
#include "gpulimit/tbl/hooks.def"
#define RUNTIME(_symbol, _text) #_symbol,
#include "gpulimit/tbl/runtime.def"
};
