/* SPDX-License-Identifier: MIT
 *
 * Programs that a test starts, with or without the library, to look at them from outside: what they
 * print, how they end. Mostly the test's own executable in one of its roles, so that what the
 * program does stands beside what is expected of it.
 *
 * From the test's environment: PRELOAD_LIBRARY, what LD_PRELOAD has to be for programs under the
 * library; PRELOAD_BARE, the same without it (a sanitizer's runtime, or empty).
 */
#ifndef TESTS_PRELOAD_PROGRAM_H
#define TESTS_PRELOAD_PROGRAM_H

enum { PROGRAM_TEXT_BYTES = 1 << 16 };

struct program {
    int status; /* exit status; 128 + the signal that ended it */
    char out[PROGRAM_TEXT_BYTES];
    char err[PROGRAM_TEXT_BYTES];
};

#define PROGRAM_ITSELF "/proc/self/exe"

/* "LD_PRELOAD=..." for programs under the library, and for those without. */
const char *program_under_library(void);
const char *program_without_library(void);

/* Runs a program to its end. Each variable is added to the environment ("NAME=value") or taken out
 * of it ("NAME"). Both lists end with NULL. */
void program_run(struct program *program, const char *const variables[], const char *const words[]);

#define PROGRAM_LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs this executable in a role, under the library. */
void program_play(struct program *program, const char *role, const char *const variables[]);

/* That it ended with 0 and, if it did not, what it said. */
void program_assert_ok(const struct program *program);

/* How many lines a text has. */
unsigned program_lines(const char *text);

/* In the started program, where cmocka's asserts mean nothing: a role says on stderr what went
 * wrong and returns 1. */
#define expect(_condition)                                                                         \
    do {                                                                                           \
        if (!(_condition)) {                                                                       \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #_condition);             \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

struct role {
    const char *name;
    int (*play)(void);
};

/* Plays the role of that name, and returns what main is to return. The list ends with {0}. */
int role_play(const struct role roles[], const char *name);

/* Waits for a child of the role's own. Returns its exit status; 128 + the signal that ended it; -1
 * if there is none. */
int role_wait(int child);

/* How most CUDA programs begin: cuInit, the primary context of device 0 made current. */
int role_begin(void);

#endif
