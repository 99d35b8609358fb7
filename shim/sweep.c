/* SPDX-License-Identifier: MIT
 *
 * A ledger is dead when nobody holds the lock that its writer holds for life.
 */
#include "sweep.h"

#include "gpulimit/region.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct sweep_corpse {
    char name[64];
    time_t died;
};

/* When a dead process died, or was first found dead, which is then noted: a killed one could not
 * say. The mark is a file that nobody may write any more; its time is that of the mark. */
static time_t sweep_time_of_death(int file, const struct stat *status)
{
    if ((status->st_mode & 0777) == GPULIMIT_REGION_DEAD_MODE)
        return status->st_mtime;
    (void)fchmod(file, GPULIMIT_REGION_DEAD_MODE);
    (void)futimens(file, NULL);
    return time(NULL);
}

/* Whether a file is a ledger of this user whose writer is gone. */
static bool sweep_is_dead(int folder, const char *name, time_t *died)
{
    char magic[8];
    struct stat status;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    /* A writer that has no lock yet has no magic yet either: it writes the magic last. */
    bool is_dead = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_uid == geteuid() &&
                   pread(file, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                   memcmp(magic, GPULIMIT_REGION_MAGIC, sizeof magic) == 0 &&
                   fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    if (is_dead)
        *died = sweep_time_of_death(file, &status);
    close(file);
    return is_dead;
}

/* Puts a corpse among the newest SWEEP_KEEP, and removes the file of whichever falls out. */
static void sweep_bury(int folder, struct sweep_corpse kept[SWEEP_KEEP], unsigned *count,
                       const struct sweep_corpse *corpse)
{
    if (*count < SWEEP_KEEP) {
        kept[(*count)++] = *corpse;
        return;
    }
    unsigned oldest = 0;
    for (unsigned i = 1; i < SWEEP_KEEP; i++) {
        if (kept[i].died < kept[oldest].died)
            oldest = i;
    }
    bool is_newer = corpse->died > kept[oldest].died;
    unlinkat(folder, is_newer ? kept[oldest].name : corpse->name, 0);
    if (is_newer)
        kept[oldest] = *corpse;
}

void sweep_dead_ledgers(const char *dir)
{
    struct sweep_corpse kept[SWEEP_KEEP];
    unsigned count = 0;
    time_t now = time(NULL);
    DIR *folder = opendir(dir);
    if (!folder)
        return;
    for (struct dirent *file = readdir(folder); file; file = readdir(folder)) {
        struct sweep_corpse corpse;
        size_t length = strlen(file->d_name);
        if (strncmp(file->d_name, GPULIMIT_REGION_PREFIX, sizeof GPULIMIT_REGION_PREFIX - 1) != 0 ||
            length >= sizeof corpse.name ||
            !sweep_is_dead(dirfd(folder), file->d_name, &corpse.died))
            continue;
        memcpy(corpse.name, file->d_name, length + 1);
        if (now - corpse.died > SWEEP_AGE_SECONDS)
            unlinkat(dirfd(folder), corpse.name, 0);
        else
            sweep_bury(dirfd(folder), kept, &count, &corpse);
    }
    closedir(folder);
}
