/* SPDX-License-Identifier: MIT
 *
 * The native stack of the calling thread, as addresses, and the loaded objects that addresses lie
 * in. Nothing is symbolised here: that is for a tool, later, in another process.
 *
 * Any thread, with a stack of any size; after fork; in constructors and destructors. Not in signal
 * handlers and not inside dlsym. errno is kept.
 */
#ifndef SHIM_NATIVE_FRAMES_H
#define SHIM_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { NATIVE_FRAMES_MOST = 31, NATIVE_BUILD_ID_BYTES = 32, NATIVE_PATH_BYTES = 460 };

/* One loaded object. It stands until the object is unloaded; another may lie there afterwards. */
struct native_module {
    uint64_t start, end; /* all that it was mapped at, holes between its segments included */
    uint64_t bias;       /* what an address of its ELF file has grown by in memory */
    uint8_t build_id[NATIVE_BUILD_ID_BYTES];
    uint32_t build_id_bytes;      /* 0: it has none */
    char path[NATIVE_PATH_BYTES]; /* NUL-terminated; the end of one that is too long */
};

/* Puts down the return addresses of those who led to this call, innermost first, without those in
 * this object itself. At most NATIVE_FRAMES_MOST. Returns how many; 0 where there is no unwinder,
 * and in a call from within another on the same thread.
 *
 * Where the fast walk of unwind.h gives up, the first call of a process loads libgcc_s, unless the
 * program has: it takes the loader's lock and calls malloc. The caller holds no lock. */
unsigned native_frames(uint64_t *addresses, unsigned most);

/* Finds the object that an address lies in. A return address may be one past the end of a function
 * that ends in a call: give the address before it. It takes a tenth of a microsecond, for an object
 * that the loader knows by a relative name some more. Returns false if there is none: code made at
 * run time.
 *
 * No lock, but with glibc before 2.35 one of the loader's, which a fork on another thread would
 * leave to the child: there the caller holds a lock that forks wait for. */
bool native_module_of(uint64_t address, struct native_module *module);

#endif
