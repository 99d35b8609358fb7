/* SPDX-License-Identifier: MIT
 *
 * Files as processes in containers see them: the roots of those that see others than we do.
 */
#ifndef GPULIMIT_TOOLS_ROOTS_H
#define GPULIMIT_TOOLS_ROOTS_H

#include <stddef.h>
#include <stdint.h>

/* A zero-initialised one has none. */
struct roots {
    int32_t *pids;
    size_t count;
};

/* Adds a process of our pid namespace if its root or its mounts are not ours, and may be looked
 * into. Each once. */
void roots_add(struct roots *roots, int32_t pid);
void roots_drop(struct roots *roots);

/* Opens the file of a path that begins with a slash, as that process would: no link leads out of
 * its root. For reading, without waiting. Returns a descriptor, or -1. */
int roots_open_file(const struct roots *roots, size_t number, const char *path);

#endif
