/* SPDX-License-Identifier: MIT
 *
 * Reads /proc/self, once per process, with plain read(2): stdio would call malloc.
 */
#include "identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads at most size - 1 bytes of a file and ends them with NUL. Returns how many. */
static size_t identity_read(const char *path, char *buffer, size_t size)
{
    size_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got;
        while (length < size - 1 && (got = read(file, buffer + length, size - 1 - length)) > 0)
            length += (size_t)got;
        close(file);
    }
    buffer[length] = '\0';
    return length;
}

/* Field 22 of /proc/self/stat. Field 2, the name in parentheses, may hold spaces and parentheses
 * itself: count from its last ')'. */
static uint64_t identity_start_ticks(void)
{
    char stat[1024];
    identity_read("/proc/self/stat", stat, sizeof stat);
    const char *at = strrchr(stat, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void identity_copy(char *copy, size_t size, const char *value)
{
    memset(copy, 0, size);
    if (value)
        strncpy(copy, value, size - 1);
}

/* The last line's path: with cgroup v2 it is the only one. */
static void identity_cgroup(char *cgroup, size_t size)
{
    char text[2048];
    identity_read("/proc/self/cgroup", text, sizeof text);
    char *rest = text;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *path = strrchr(line, ':');
        if (path)
            identity_copy(cgroup, size, path + 1);
    }
}

void identity_fill(struct gpulimit_header *header)
{
    struct stat namespace;
    header->pid = getpid();
    header->uid = getuid();
    if (stat("/proc/self/ns/pid", &namespace) == 0)
        header->pid_namespace = namespace.st_ino;
    header->start_ticks = identity_start_ticks();
    identity_read("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof header->boot_id);
    header->boot_id[strcspn(header->boot_id, "\n")] = '\0';
    identity_copy(header->library_version, sizeof header->library_version, GPULIMIT_VERSION);
    header->command_bytes =
        (uint32_t)identity_read("/proc/self/cmdline", header->command, sizeof header->command);
    identity_copy(header->notebook, sizeof header->notebook, getenv("JPY_SESSION_NAME"));
    identity_copy(header->slurm_job_id, sizeof header->slurm_job_id, getenv("SLURM_JOB_ID"));
    identity_cgroup(header->cgroup, sizeof header->cgroup);
}
