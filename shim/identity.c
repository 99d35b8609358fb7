/* SPDX-License-Identifier: MIT
 *
 * Reads /proc, with plain read(2): stdio would call malloc.
 */
#include "identity.h"

#include "report/words.h"

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

/* Field 22 of /proc/PID/stat. Field 2, the name in parentheses, may hold spaces and parentheses
 * itself: count from its last ')'. 0 if there is no such process, or it is a zombie, which has
 * given its memory back. */
static uint64_t identity_start_ticks(const char *path)
{
    char stat[1024];
    identity_read(path, stat, sizeof stat);
    const char *at = strrchr(stat, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void identity_read_boot(char *boot_id, size_t size)
{
    identity_read("/proc/sys/kernel/random/boot_id", boot_id, size);
    boot_id[strcspn(boot_id, "\n")] = '\0';
}

static uint64_t identity_pid_namespace(void)
{
    struct stat namespace;
    return stat("/proc/self/ns/pid", &namespace) == 0 ? namespace.st_ino : 0;
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
    header->pid = getpid();
    header->uid = getuid();
    header->pid_namespace = identity_pid_namespace();
    header->start_ticks = identity_start_ticks("/proc/self/stat");
    identity_read_boot(header->boot_id, sizeof header->boot_id);
    identity_copy(header->library_version, sizeof header->library_version, GPULIMIT_VERSION);
    header->command_bytes =
        (uint32_t)identity_read("/proc/self/cmdline", header->command, sizeof header->command);
    identity_copy(header->notebook, sizeof header->notebook, getenv("JPY_SESSION_NAME"));
    identity_copy(header->slurm_job_id, sizeof header->slurm_job_id, getenv("SLURM_JOB_ID"));
    identity_cgroup(header->cgroup, sizeof header->cgroup);
}

bool identity_runs(const struct gpulimit_header *header)
{
    char boot_id[sizeof header->boot_id];
    struct text path;
    identity_read_boot(boot_id, sizeof boot_id);
    uint64_t namespace = identity_pid_namespace();
    if (boot_id[0] == '\0' || strncmp(boot_id, header->boot_id, sizeof boot_id) != 0 ||
        namespace == 0 || namespace != header->pid_namespace || header->pid <= 0)
        return false;
    text_init(&path);
    text_add(&path, "/proc/");
    text_add_number(&path, (uint64_t)header->pid);
    text_add(&path, "/stat");
    uint64_t ticks = identity_start_ticks(text_string(&path));
    return ticks != 0 && ticks == header->start_ticks;
}
