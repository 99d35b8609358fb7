/* SPDX-License-Identifier: MIT
 *
 * What native code is called: addresses of modules to functions, source files and lines. From the
 * files that the modules were loaded from, and never from the process.
 */
#ifndef GPULIMIT_TOOLS_SYMBOLS_H
#define GPULIMIT_TOOLS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpulimit/region.h"

struct symbol {
    const char *function; /* of C++ without what it takes (demangle.h); NULL unknown */
    const char *file;     /* of the source; NULL unknown */
    uint32_t line;        /* 0 unknown */
};

struct symbols;

/* What has been looked up is kept until symbols_close. */
struct symbols *symbols_open(void);
void symbols_close(struct symbols *symbols);

/* A process of our pid namespace whose modules will be asked for: if it is in a container, their
 * files are looked for there too. */
void symbols_add_process(struct symbols *symbols, int32_t pid);

/* Looks up what was called from before `return_address`. Nothing is known of a module whose file is
 * gone, has another build-id or none, or belongs to somebody whom we do not trust: neither root nor
 * ourselves; or if `symbols` is NULL. The strings live as long as `symbols`. */
struct symbol symbols_find(struct symbols *symbols, const struct gpulimit_module *module,
                           uint64_t return_address);

/* False in a build without libdw, which knows nothing of any module. */
bool symbols_are_built_in(void);

#endif
