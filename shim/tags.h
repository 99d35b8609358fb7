/* SPDX-License-Identifier: MIT
 *
 * The names that a thread has pushed: "epoch 3", "validation". The innermost one says what the
 * thread is at. Names are copied; a push costs as much as that and no more.
 *
 * Each thread has its own; a fork's child keeps those of the thread that forked. No CUDA, no locks,
 * no memory but the thread's own: at any time, from the first instruction of a program on.
 */
#ifndef SHIM_TAGS_H
#define SHIM_TAGS_H

#include "gpulimit/region.h"

#include <stdbool.h>

enum {
    TAGS_DEPTH = 16, /* names beyond are counted, not kept */
    /* Who pushes. Each owner has a stack of its own, as far as popping goes. */
    TAGS_OWN = 0,        /* gpulimit_tag_push */
    TAGS_FIRST_NVTX = 1, /* from here on: NVTX's domains, its default one first */
    TAGS_OWNERS = 32,
};

/* A name, and what its number in the ledger has been found to be. */
struct tags_name {
    char text[GPULIMIT_TEXT_BYTES]; /* the beginning of one that is too long */
    uint32_t number, generation;    /* for limit_tags.c, see there */
    bool is_numbered;
    uint8_t owner;
};

/* Pushes a name; NULL or "" leaves the one below in sight. Returns the level that it has among its
 * owner's, from 0. */
unsigned tags_push(unsigned owner, const char *name);

/* Takes an owner's innermost name away, whatever others have pushed since. Returns the level that
 * it had, -1 if there is none. */
int tags_pop(unsigned owner);

/* The innermost name of this thread; NULL if there is none. Stays until the next push or pop. */
struct tags_name *tags_current(void);

#endif
