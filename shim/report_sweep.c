/* SPDX-License-Identifier: MIT
 *
 * One walk through the folder, with the oldest few in hand.
 */
#include "report_sweep.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REPORT_SWEEP_LOOKED_AT = 4096 };

/* One entry of a folder, as getdents64 has it: opendir would call malloc. */
struct report_sweep_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

struct report_sweep {
    int folder;
    unsigned count; /* of reports */
    struct {
        char name[64];
        struct timespec written;
    } oldest[REPORT_SWEEP_ONCE]; /* the oldest first */
    unsigned oldest_count;
};

static bool report_sweep_is_older(struct timespec one, struct timespec other)
{
    return one.tv_sec != other.tv_sec ? one.tv_sec < other.tv_sec : one.tv_nsec < other.tv_nsec;
}

static void report_sweep_look_at(struct report_sweep *sweep, const char *name)
{
    struct stat status;
    size_t length = strlen(name);
    const char *visible = name + (name[0] == '.');
    if (strncmp(visible, "oom-", 4) != 0 || length >= sizeof sweep->oldest[0].name ||
        fstatat(sweep->folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        return;
    sweep->count++;
    unsigned at = sweep->oldest_count;
    while (at > 0 && report_sweep_is_older(status.st_mtim, sweep->oldest[at - 1].written))
        at--;
    if (at == REPORT_SWEEP_ONCE)
        return;
    if (sweep->oldest_count < REPORT_SWEEP_ONCE)
        sweep->oldest_count++;
    memmove(&sweep->oldest[at + 1], &sweep->oldest[at],
            (sweep->oldest_count - at - 1) * sizeof sweep->oldest[0]);
    memcpy(sweep->oldest[at].name, name, length + 1);
    sweep->oldest[at].written = status.st_mtim;
}

static long report_sweep_look_at_some(struct report_sweep *sweep)
{
    _Alignas(struct report_sweep_entry) char some[1024];
    long bytes = syscall(SYS_getdents64, sweep->folder, some, sizeof some);
    for (long at = 0; at < bytes;) {
        const struct report_sweep_entry *entry = (const void *)(some + at);
        report_sweep_look_at(sweep, entry->name);
        at += entry->bytes;
    }
    return bytes;
}

void report_sweep(int folder)
{
    struct report_sweep sweep = {.folder = folder};
    while (sweep.count < REPORT_SWEEP_LOOKED_AT && report_sweep_look_at_some(&sweep) > 0)
        continue;
    for (unsigned i = 0; i < sweep.oldest_count && sweep.count > REPORT_SWEEP_KEEP; i++) {
        (void)unlinkat(folder, sweep.oldest[i].name, 0);
        sweep.count--;
    }
}
