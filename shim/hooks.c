/* SPDX-License-Identifier: MIT
 *
 * The table behind hooks.h, and the proof that each hook has NVIDIA's own prototype.
 */
#include "hooks.h"

#include "loaded.h"

#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&_symbol), PFN_##_pfn),                 \
                   #_symbol " is not of the type that hooks.def says");
#include "gpulimit/tbl/hooks.def"

real_function hooks_ours(enum api api)
{
    static const real_function ours[APIS] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) (real_function) _symbol,
#include "gpulimit/tbl/hooks.def"
    };
    return ours[api];
}

real_function hooks_drivers(enum api api)
{
    switch (api) {
#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    case API_##_symbol:                                                                            \
        return (real_function)real._symbol;
#include "gpulimit/tbl/hooks.def"
    case APIS:
        break;
    }
    return (real_function)real_absent;
}

enum api hooks_find_name(const char *name)
{
    enum api api = 0;
    if (name[0] != 'c' || name[1] != 'u')
        return APIS;
    while (api < APIS && !loaded_is_name(api_names[api], name))
        api++;
    return api;
}

real_function hooks_replace(real_function address)
{
    if (address == (real_function)real_absent)
        return address;
    for (enum api api = 0; api < APIS; api++) {
        if (hooks_drivers(api) == address)
            return hooks_ours(api);
    }
    return address;
}
