// SPDX-License-Identifier: MIT
//
// The table of exported functions; see symbols.h.

#include "symbols.h"

#include <cudaTypedefs.h>
#include <stdatomic.h>
#include <string.h>

#define SYMBOL_TYPE_0(_base, _version) PFN_##_base##_v##_version
#define SYMBOL_TYPE_1(_base, _version) PFN_##_base##_v##_version##_ptsz
#define SYMBOL(_symbol, _base, _version, _per_thread)                                              \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&_symbol),                              \
                                                SYMBOL_TYPE_##_per_thread(_base, _version)),       \
                   #_symbol " is what came with CUDA " #_version);
#include "symbols.def"

static const struct {
    const char *name;
    const char *base;
    int version;
    bool per_thread;
    void (*address)(void);
} symbols[SYMBOLS] = {
#define SYMBOL(_symbol, _base, _version, _per_thread)                                              \
    {#_symbol, #_base, _version, _per_thread, (void (*)(void))_symbol},
#include "symbols.def"
};

static _Atomic uint64_t calls[SYMBOLS];
static _Atomic int failures[SYMBOLS]; /* 0: none armed */
static _Atomic int skips[SYMBOLS];    /* calls that go by before it */

static bool symbols_has_list(const char *base, bool per_thread)
{
    for (unsigned i = 0; i < SYMBOLS; i++)
        if (symbols[i].per_thread == per_thread && strcmp(symbols[i].base, base) == 0)
            return true;
    return false;
}

CUdriverProcAddressQueryResult symbols_find(const char *base, int version, bool per_thread,
                                            void **address)
{
    bool known = false;

    *address = NULL;
    /* A name with per-thread variants answers from those alone, even where they came later. */
    per_thread = per_thread && symbols_has_list(base, true);
    for (unsigned i = 0; i < SYMBOLS; i++) {
        if (symbols[i].per_thread != per_thread || symbols[i].version > driver_version ||
            strcmp(symbols[i].base, base) != 0)
            continue;
        known = true;
        if (version < 0 || symbols[i].version <= version)
            memcpy(address, &symbols[i].address, sizeof *address);
    }
    if (*address)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult symbols_count_call(enum symbol symbol)
{
    atomic_fetch_add_explicit(&calls[symbol], 1, memory_order_relaxed); /* only a count */
    if (!atomic_load_explicit(&failures[symbol], memory_order_relaxed)) /* the exchange decides */
        return CUDA_SUCCESS;
    if (atomic_load(&skips[symbol]) > 0 && atomic_fetch_sub(&skips[symbol], 1) > 0)
        return CUDA_SUCCESS;
    return (CUresult)atomic_exchange(&failures[symbol], 0);
}

static unsigned symbols_index(const char *name)
{
    unsigned i = 0;

    while (i < SYMBOLS && strcmp(symbols[i].name, name) != 0)
        i++;
    return i;
}

uint64_t symbols_calls(const char *name)
{
    unsigned i = symbols_index(name);

    return i < SYMBOLS ? atomic_load(&calls[i]) : 0;
}

void symbols_fail_after(const char *name, unsigned calls_before, CUresult result)
{
    unsigned i = symbols_index(name);

    if (i >= SYMBOLS)
        return;
    atomic_store(&skips[i], (int)calls_before);
    atomic_store(&failures[i], (int)result);
}
