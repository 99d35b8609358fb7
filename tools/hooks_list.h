/* SPDX-License-Identifier: MIT
 *
 * The rows of hooks.def and runtime.def as data, for printing. The latter have one role: they name
 * what the former count.
 */
#ifndef GPULIMIT_TOOLS_HOOKS_LIST_H
#define GPULIMIT_TOOLS_HOOKS_LIST_H

static const struct {
    const char *symbol;
    const char *room;
    const char *role;
    const char *text;
} hooks_list[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) {#_symbol, #_room, #_role, _text},
#include "gpulimit/tbl/hooks.def"
#define RUNTIME(_symbol, _text) {#_symbol, "runtime", "NAMES", _text},
#include "gpulimit/tbl/runtime.def"
};

enum { HOOKS_LIST_COUNT = sizeof(hooks_list) / sizeof(hooks_list[0]) };

#endif
