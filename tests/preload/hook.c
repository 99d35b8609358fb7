/* SPDX-License-Identifier: MIT
 *
 * The table of hook.h.
 */
#include "hook.h"

#include <string.h>

static const CUipcMemHandle hook_ipc;
static const nvmlDevice_t hook_card; /* none: NVML says first that it is not initialised */
static CUmemLocation hook_location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};

static const CUmemAllocationProp hook_device_prop = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemPoolProps hook_pool_props = {
    .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

#define CALL(_symbol, _arguments)                                                                  \
    static int hook_call_##_symbol(hook_function function, struct hook_outputs *out)               \
    {                                                                                              \
        (void)out; /* some have no results */                                                      \
        return (int)((__typeof__(&_symbol))function)_arguments;                                    \
    }
#include "calls.def"

struct hook hooks[HOOKS] = {
#define HOOK(_symbol, _pfn, _room, _role, _text)                                                   \
    {#_symbol, _role, (hook_function)_symbol, hook_call_##_symbol},
#include "gpulimit/tbl/hooks.def"
};

bool hook_is_nvml(const struct hook *hook)
{
    return strncmp(hook->symbol, "nvml", 4) == 0;
}

int hook_call(const struct hook *hook, hook_function function, struct hook_outputs *out)
{
    memset(out, 0x5a, sizeof *out);
    return hook->call(function, out);
}
