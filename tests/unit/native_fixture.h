/* SPDX-License-Identifier: MIT
 *
 * The known stack of native_chain.c, opened at run time, and captures from within it: for the tests
 * of native_frames. A capture can be had by the fast walk, or by the C library's: a caller in code
 * that belongs to no object makes the fast one give up.
 */
#ifndef TESTS_UNIT_NATIVE_FIXTURE_H
#define TESTS_UNIT_NATIVE_FIXTURE_H

#include "unit.h"

#include "native_chain.h"
#include "native_frames.h"

enum { ASKED = 14, CHAIN_FRAMES = 3 };

struct native_chain {
    void *handle;
    __typeof__(chain_outer) *outer, *middle, *inner;
    __typeof__(chain_deep) *deep;
    __typeof__(chain_aligned) *aligned;
    __typeof__(chain_at_unload) *at_unload;
};

extern struct native_chain chain;

struct capture {
    unsigned most, count;
    uint64_t addresses[NATIVE_FRAMES_MOST + 2];
};

/* Whether call knows the slow way on this machine. */
#if defined(__x86_64__)
enum { IS_SLOW_KNOWN = 1, CODE_RETURNS_TO = 6 };
#else
enum { IS_SLOW_KNOWN = 0, CODE_RETURNS_TO = 0 };
#endif

extern void *code_page; /* of no object; a call from it returns to CODE_RETURNS_TO in it */
extern bool is_slow;

#define BOTH_WAYS (int _way = 0; _way <= IS_SLOW_KNOWN && (is_slow = _way, true); _way++)

/* Opens an object made of native_chain.c. Returns 0, as a set-up does. */
int open_chain(const char *path);

/* Whether these are in the chain's three functions, the innermost first. */
bool is_chain(const uint64_t addresses[CHAIN_FRAMES]);

/* The function that a return address lies in. */
void *function_of(uint64_t address);

/* Captures into a struct capture; called through the chain. It and what calls the chain are frames
 * of this program. */
void take(void *argument);
void take_through_the_chain(void *argument);

/* Calls a function, the slow way if is_slow. */
void call(void (*function)(void *), void *argument);

/* What take_through_the_chain captures. */
struct capture captured(void);

/* Runs something in a child of its own, as it wants a process in which nothing has been captured,
 * or is about forks. Returns whether it said true. */
bool says_true_in_a_child(bool (*run)(void));

#endif
