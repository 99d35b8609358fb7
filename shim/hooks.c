/* SPDX-License-Identifier: MIT
 *
 * The table behind hooks.h, and the proof that each hook has its library's own prototype.
 */
#include "hooks.h"

#include "loaded.h"

#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&_symbol), PFN_##_pfn),                 \
                   #_symbol " is not of the type that hooks.def says");
#include "gpulimit/tbl/hooks.def"

real_function hooks_ours(enum api api)
{
    static const real_function ours[API_HOOKS] = {
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
#define RUNTIME(_symbol, _text) case API_##_symbol:
#include "gpulimit/tbl/runtime.def"
    case APIS:
        break;
    }
    return (real_function)real_absent;
}

void hooks_ready(enum api api)
{
    if (REAL_IS_NVML(api_names[api]))
        (void)real_nvml_ready();
    else
        (void)real_ready();
}

/* Spares all other names the way through the table. */
static bool hooks_may_have(const char *name)
{
    return (name[0] == 'c' && name[1] == 'u') ||
           (name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l');
}

enum api hooks_find_name(const char *name)
{
    enum api api = 0;
    if (!hooks_may_have(name))
        return APIS;
    while (api < APIS && !loaded_is_name(api_names[api], name))
        api++;
    return api;
}

real_function hooks_replace(real_function address)
{
    if (real_is_absent(address))
        return address;
    for (enum api api = 0; api < API_HOOKS; api++) {
        if (hooks_drivers(api) == address)
            return hooks_ours(api);
    }
    return address;
}
