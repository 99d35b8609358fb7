/* SPDX-License-Identifier: MIT
 *
 * Opens files of other mount namespaces by way of /proc/PID/root.
 */
#include "roots.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

enum { ROOTS_PATH_BYTES = 32 };

static void roots_print_path(int32_t pid, const char *name, char path[ROOTS_PATH_BYTES])
{
    snprintf(path, ROOTS_PATH_BYTES, "/proc/%" PRId32 "/%s", pid, name);
}

/* Whether what a process has under a name in /proc is the same as what we have. */
static bool roots_is_ours(int32_t pid, const char *name, bool *can_be_seen)
{
    char path[ROOTS_PATH_BYTES];
    char our_path[ROOTS_PATH_BYTES];
    struct stat ours;
    struct stat file;

    roots_print_path(pid, name, path);
    snprintf(our_path, sizeof(our_path), "/proc/self/%s", name);
    if (stat(path, &file) != 0 || stat(our_path, &ours) != 0) {
        *can_be_seen = false;
        return false;
    }
    return file.st_dev == ours.st_dev && file.st_ino == ours.st_ino;
}

void roots_add(struct roots *roots, int32_t pid)
{
    bool can_be_seen = true;
    bool is_ours = roots_is_ours(pid, "root", &can_be_seen);

    is_ours &= roots_is_ours(pid, "ns/mnt", &can_be_seen);
    for (size_t i = 0; i < roots->count; i++) {
        is_ours |= roots->pids[i] == pid;
    }
    if (can_be_seen && !is_ours) {
        roots->pids = memory_grow(roots->pids, roots->count, sizeof(*roots->pids));
        roots->pids[roots->count++] = pid;
    }
}

void roots_drop(struct roots *roots)
{
    free(roots->pids);
    *roots = (struct roots){0};
}

int roots_open_file(const struct roots *roots, size_t number, const char *path)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    char root_path[ROOTS_PATH_BYTES];
    int root;
    int fd;

    roots_print_path(roots->pids[number], "root", root_path);
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return -1;
    }
    fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    close(root);
    return fd;
}
