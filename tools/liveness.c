/* SPDX-License-Identifier: MIT
 *
 * Says whether the process that writes a ledger still runs. A pid alone cannot tell: it may be
 * reused, and it means something else in another pid namespace. The kernel can: the writer holds a
 * record lock on its file for life, and the lock goes when the process does, whatever the
 * namespace.
 */
#include "liveness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads a small file of /proc as a string; "" if it cannot be read. */
static void liveness_read_file(const char *path, size_t size, char *text)
{
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        got = read(fd, text, size - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

static bool liveness_holds_lock(int fd, int32_t *pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
        return false;
    }
    *pid = lock.l_pid > 0 ? lock.l_pid : 0; /* 0: its namespace cannot be seen from here */
    return true;
}

static bool liveness_shares_our_pids(const struct gpulimit_ledger *ledger)
{
    char boot_id[64];
    struct stat namespace;

    liveness_read_file("/proc/sys/kernel/random/boot_id", sizeof(boot_id), boot_id);
    boot_id[strcspn(boot_id, "\n")] = '\0';
    return boot_id[0] != '\0' && strcmp(boot_id, ledger->boot_id) == 0 &&
           stat("/proc/self/ns/pid", &namespace) == 0 && namespace.st_ino == ledger->pid_namespace;
}

/* True if `pid` runs and began at `start_ticks`. */
static bool liveness_is_same_process(int32_t pid, uint64_t start_ticks)
{
    char path[32];
    char text[1024];
    const char *at;
    char state;
    uint64_t ticks;

    snprintf(path, sizeof(path), "/proc/%" PRId32 "/stat", pid);
    liveness_read_file(path, sizeof(text), text);
    /* The second field is the program's name in brackets, which may itself hold brackets and
     * blanks. */
    at = strrchr(text, ')');
    if (!at || sscanf(at + 1,
                      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                      " %" SCNu64,
                      &state, &ticks) != 2) {
        return false;
    }
    /* A zombie has given its memory back; only its parent has not looked yet. */
    return state != 'Z' && state != 'X' && ticks == start_ticks;
}

/* Whether a process has mapped a file of the ledger's name, which is like no other's; true where we
 * may not look. */
static bool liveness_has_mapped(int32_t pid, const char *ledger_path)
{
    const char *slash = strrchr(ledger_path, '/');
    const char *name = slash ? slash + 1 : ledger_path;
    bool has_mapped = false;
    char path[32];
    char *line = NULL;
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", pid);
    file = fopen(path, "re");
    if (!file) {
        return true;
    }
    while (!has_mapped && getline(&line, &size, file) > 0) {
        const char *mapped = strrchr(line, '/');

        /* A newline or " (deleted)" follows. */
        has_mapped = mapped && strncmp(mapped + 1, name, strlen(name)) == 0 &&
                     strchr(" \n", mapped[1 + strlen(name)]);
    }
    free(line);
    fclose(file);
    return has_mapped;
}

void liveness_find(int fd, struct gpulimit_ledger *ledger)
{
    ledger->lock_pid = 0;
    if (ledger->ended_time_ns != 0) {
        ledger->state = GPULIMIT_STATE_EXITED;
    } else if (liveness_holds_lock(fd, &ledger->lock_pid)) {
        ledger->state = GPULIMIT_STATE_LIVE;
    } else if (liveness_shares_our_pids(ledger) &&
               liveness_is_same_process(ledger->pid, ledger->start_ticks) &&
               liveness_has_mapped(ledger->pid, ledger->path)) {
        /* It runs without the lock: programs that close every descriptor drop it unknowingly. One
         * that has become another program by an exec has no mapping left, and holds nothing. */
        ledger->state = GPULIMIT_STATE_LIVE;
        ledger->lock_pid = ledger->pid;
    } else {
        ledger->state = GPULIMIT_STATE_STALE;
    }
}
