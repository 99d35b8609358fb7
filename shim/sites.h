/* SPDX-License-Identifier: MIT
 *
 * Call sites: where a program asked for memory. The same stack is the same site, kept once, under a
 * number, and mirrored into the ledger file for a tool to read; nothing is symbolised here.
 *
 * Three steps, since what has to be found out of a new stack takes the loader's lock: take the
 * stack and ask for its number; if there is none, describe it, without a lock; then add it, under
 * the caller's. A zero-initialised struct sites is empty and valid.
 *
 * What was added is kept in private memory too, at places that stay until sites_clear, for the
 * library's own reports: whoever has got a number from here may read it without the lock.
 */
#ifndef SHIM_SITES_H
#define SHIM_SITES_H

#include "python_frames.h"
#include "site_name.h"
#include "table.h"

#include "gpulimit/region.h"

#include <stdbool.h>

enum {
    SITES_NATIVE = 16,
    SITES_PYTHON = GPULIMIT_SITE_FRAMES - SITES_NATIVE,
    SITES_MOST = 4096, /* stacks beyond these have no number */
    SITES_TEXTS_MOST = 32768,
    /* Of the texts: what a program makes up as it goes must leave room for what frames need. */
    SITES_TAGS_MOST = 8192,
    SITES_MARKS_MOST = 8192,
    SITES_STREAMS_MOST = 1024,
    SITES_MODULES_MOST = 512,
};

/* A stack as it was taken. The Python frames stand only as long as the call that it was taken in.
 */
struct sites_stack {
    unsigned native_count, python_count;
    uint64_t native[SITES_NATIVE]; /* return addresses, innermost first */
    struct python_frame python[SITES_PYTHON];
};

struct sites_text {
    char text[GPULIMIT_TEXT_BYTES];
};

/* Records by their number - 1. */
struct sites_kept {
    struct gpulimit_site sites[SITES_MOST];
    struct sites_text texts[SITES_TEXTS_MOST];
    struct gpulimit_module modules[SITES_MODULES_MOST];
};

struct sites {
    struct table by_stack;  /* hash -> number */
    struct table by_text;   /* hash -> number */
    struct table by_module; /* start -> number */
    struct table by_name;   /* hash -> the first site of that name */
    uint32_t sites, texts, modules;
    uint32_t tags, marks, streams; /* of the texts */
    struct sites_called {
        char name[SITE_NAME_BYTES];
        uint32_t first; /* the first site of that name: several stacks may lead to one line */
        uint64_t bytes, count; /* for a sum over the entries of a device */
        uint64_t oldest_mono_ns;
    } * called; /* by number, SITES_MOST + 1 of them, where they stay; NULL: no memory */
    struct sites_kept *kept; /* NULL: no memory, or nothing yet */
};

/* A number that differs, in all likelihood, where stacks do. Never 0. */
uint64_t sites_hash(const struct sites_stack *stack);

/* The number of a stack, or 0. */
uint32_t sites_find(const struct sites *sites, uint64_t hash);

/* Whether no stack more gets a number: then nobody needs to find out what it is made of. */
bool sites_are_full(const struct sites *sites);

/* The number of a text that is there, or 0. */
uint32_t sites_find_text(const struct sites *sites, const struct sites_text *text);

/* Add what a stack is made of, and it itself, unless it is there. Return the number; 0 if there is
 * no room for more. */
uint32_t sites_add_text(struct sites *sites, const struct sites_text *text);
/* A text of a sort of which there are *count so far and may be so many. */
uint32_t sites_add_text_of(struct sites *sites, const struct sites_text *text, uint32_t *count,
                           uint32_t most);
uint32_t sites_add_module(struct sites *sites, const struct gpulimit_module *module);
uint32_t sites_add(struct sites *sites, uint64_t hash, const struct gpulimit_site *site,
                   const char *name);

/* What was kept under a number; NULL if nothing is known of it. */
const struct gpulimit_site *sites_kept_site(const struct sites_kept *kept, uint32_t number);
const char *sites_kept_text(const struct sites_kept *kept, uint32_t number);
const struct gpulimit_module *sites_kept_module(const struct sites_kept *kept, uint32_t number);

void sites_clear(struct sites *sites);

#endif
