/* SPDX-License-Identifier: MIT
 *
 * A folder of ledgers, for doctor.h: whether ledgers can be kept and found there.
 */
#include "doctor.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"

enum {
    DOCTOR_FULL_BYTES = 1 << 18,  /* a ledger begins with less */
    DOCTOR_SCARCE_BYTES = 1 << 22 /* room for some 60000 allocations */
};

static void folder_examine_space(const char *folder, struct doctor *doctor)
{
    char cell[TEXT_CELL_BYTES];
    struct statvfs space;
    uint64_t free_bytes;
    bool has_files;

    if (statvfs(folder, &space) != 0) {
        doctor_add(doctor, DOCTOR_WARN, 0, "folder",
                   memory_print("%s: its free space is unknown: %s", folder, strerror(errno)),
                   NULL);
        return;
    }
    free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    has_files = space.f_files == 0 || space.f_favail > 0; /* 0: it has no such bound */
    text_print_bytes(free_bytes, false, cell);
    if (free_bytes < DOCTOR_FULL_BYTES || !has_files) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder",
                   memory_print("%s is full: no new ledger fits%s", folder,
                                has_files ? "" : ", as no more files do"),
                   memory_print("Limits hold, but nobody sees what is held. Make room there, or "
                                "set GPU_LIMIT_DIR."));
    } else if (free_bytes < DOCTOR_SCARCE_BYTES) {
        doctor_add(doctor, DOCTOR_WARN, 0, "folder",
                   memory_print("%s can be written, but only %s are free", folder, cell),
                   memory_print("Make room there: long lists of allocations may not fit."));
    } else {
        doctor_add(doctor, DOCTOR_OK, 0, "folder",
                   memory_print("%s can be written, %s free", folder, cell), NULL);
    }
}

static const char *folder_get_who(void)
{
    return errno == EACCES ? " by this user" : "";
}

static void folder_examine_rights(const char *folder, mode_t mode, struct doctor *doctor)
{
    if (access(folder, W_OK | X_OK) != 0) {
        doctor_add(
            doctor, DOCTOR_FAIL, 0, "folder",
            memory_print("%s cannot be written%s: %s", folder, folder_get_who(), strerror(errno)),
            memory_print("Limits hold, but nobody sees what is held. Name another folder "
                         "with GPU_LIMIT_DIR."));
    } else {
        folder_examine_space(folder, doctor);
    }
    if (access(folder, R_OK) != 0) {
        doctor_add(
            doctor, DOCTOR_FAIL, 0, "folder",
            memory_print("%s cannot be listed%s: %s", folder, folder_get_who(), strerror(errno)),
            memory_print("Ledgers in it are not seen from here. Ask as its owner, or as "
                         "root."));
    }
    if ((mode & S_IWOTH) && !(mode & S_ISVTX)) {
        doctor_add(doctor, DOCTOR_WARN, 0, "folder",
                   memory_print("in %s every user can remove everybody's ledgers", folder),
                   memory_print("Keep that to their owners: chmod +t %s", folder));
    }
}

void doctor_examine_folder(const char *folder, struct doctor *doctor)
{
    struct stat file;

    if (stat(folder, &file) != 0) {
        doctor_add(
            doctor, DOCTOR_FAIL, 0, "folder",
            memory_print("%s cannot be opened%s: %s", folder, folder_get_who(), strerror(errno)),
            memory_print("Create it, or name another one with GPU_LIMIT_DIR: without it no "
                         "process keeps a ledger."));
    } else if (!S_ISDIR(file.st_mode)) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder", memory_print("%s is no folder", folder),
                   memory_print("Name a folder with GPU_LIMIT_DIR."));
    } else {
        folder_examine_rights(folder, file.st_mode, doctor);
    }
}
