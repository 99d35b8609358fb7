/* SPDX-License-Identifier: MIT
 *
 * An NVML that lists no processes, as in a pid namespace, and hands everything else on to the true
 * one. First in LD_LIBRARY_PATH it is what a process finds (tests/gpu/escape --blind).
 *
 * The functions that libgpulimit.so knows are here, since it looks for them in this object itself;
 * all others are found in the true library, TRUE_NVML, which this one needs by that path. Names of
 * the tables that are not NVML's stay inside (blind_nvml.map).
 *
 * Arguments are passed on as whole registers, which all of them fit into on x86-64.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef uintptr_t function(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

enum { FUNCTION_NOT_FOUND = 13 };

/* By a handle of its own, so that the answer is the true library's, whoever else intercepts. */
static uintptr_t hand_on(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    function *true_function = NULL;
    void *library = dlopen(TRUE_NVML, RTLD_NOW);
    if (library) {
        *(void **)&true_function = dlsym(library, name);
        dlclose(library);
    }
    return true_function ? true_function(a, b, c, d) : FUNCTION_NOT_FOUND;
}

/* nvmlDeviceGetComputeRunningProcesses(device, &count, infos), whichever version. */
static uintptr_t answer(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    if (!strstr(name, "RunningProcesses"))
        return hand_on(name, a, b, c, d);
    if (b)
        *(unsigned *)b = 0;
    return 0;
}

#define FORWARD(_symbol)                                                                           \
    function _symbol;                                                                              \
    uintptr_t _symbol(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)                          \
    {                                                                                              \
        return answer(#_symbol, a, b, c, d);                                                       \
    }
#define HOOK(_symbol, _pfn, _room, _role, _text) FORWARD(_symbol)
#include "gpulimit/tbl/hooks.def"
#define CALL(_symbol, _pfn, _text) FORWARD(_symbol)
#include "gpulimit/tbl/calls.def"

/* Not asked by libgpulimit.so, but by others, and it would be found in the true library. */
FORWARD(nvmlDeviceGetGraphicsRunningProcesses_v3)
