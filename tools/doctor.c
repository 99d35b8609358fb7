/* SPDX-License-Identifier: MIT
 *
 * The machine's part of doctor.h: folders and ledgers, and which processes to look at.
 */
#include "doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"
#include "view.h"

enum {
    DOCTOR_FULL_BYTES = 1 << 18,  /* a ledger begins with less */
    DOCTOR_SCARCE_BYTES = 1 << 22 /* room for some 60000 allocations */
};

const char *doctor_level_name(enum doctor_level level)
{
    static const char *const names[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "fail"};

    return names[level];
}

void doctor_add(struct doctor *doctor, enum doctor_level level, int32_t pid, const char *check,
                char *text, char *advice)
{
    doctor->findings = memory_grow(doctor->findings, doctor->count, sizeof(*doctor->findings));
    doctor->findings[doctor->count++] = (struct doctor_finding){
        .level = level, .pid = pid, .check = check, .text = text, .advice = advice};
    doctor->fails += level == DOCTOR_FAIL;
    doctor->warns += level == DOCTOR_WARN;
}

void doctor_drop(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].text);
        free(doctor->findings[i].advice);
    }
    free(doctor->findings);
    *doctor = (struct doctor){0};
}

static void doctor_examine_space(const char *folder, struct doctor *doctor)
{
    char cell[TEXT_CELL_BYTES];
    struct statvfs space;
    uint64_t free_bytes;

    if (statvfs(folder, &space) != 0) {
        doctor_add(doctor, DOCTOR_WARN, 0, "folder",
                   memory_print("%s: its free space is unknown: %s", folder, strerror(errno)),
                   NULL);
        return;
    }
    free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    text_print_bytes(free_bytes, false, cell);
    if (free_bytes < DOCTOR_FULL_BYTES) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder",
                   memory_print("%s is full: no new ledger fits", folder),
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

static void doctor_examine_folder(const char *folder, struct doctor *doctor)
{
    struct stat file;

    if (stat(folder, &file) != 0) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder",
                   memory_print("%s cannot be opened: %s", folder, strerror(errno)),
                   memory_print("Create it, or name another one with GPU_LIMIT_DIR: without it no "
                                "process keeps a ledger."));
    } else if (!S_ISDIR(file.st_mode)) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder", memory_print("%s is no folder", folder),
                   memory_print("Name a folder with GPU_LIMIT_DIR."));
    } else if (access(folder, W_OK | X_OK) != 0) {
        doctor_add(doctor, DOCTOR_FAIL, 0, "folder",
                   memory_print("%s cannot be written: %s", folder, strerror(errno)),
                   memory_print("Limits hold, but nobody sees what is held. Name another folder "
                                "with GPU_LIMIT_DIR."));
    } else {
        doctor_examine_space(folder, doctor);
    }
}

/* Files that are no readable ledgers. Those of other users are theirs, and nothing is wrong. */
static void doctor_examine_damage(const struct snapshot *snapshot, struct doctor *doctor)
{
    for (size_t i = 0; i < snapshot->warnings.count; i++) {
        const struct warning *warning = &snapshot->warnings.list[i];

        if (strcmp(warning->code, "folder") == 0 || strcmp(warning->code, "forbidden") == 0) {
            continue;
        }
        doctor_add(doctor, DOCTOR_WARN, 0, "ledgers",
                   memory_print("%s %s", warning->path ? warning->path : "", warning->message),
                   memory_print("If nobody needs it, remove it. If its process is of another "
                                "release, use that release's gpulimit-stat."));
    }
}

static void doctor_examine_ledgers(const struct snapshot *snapshot, struct doctor *doctor)
{
    size_t counts[] = {
        [GPULIMIT_STATE_LIVE] = 0, [GPULIMIT_STATE_EXITED] = 0, [GPULIMIT_STATE_STALE] = 0};
    size_t forbidden = 0;
    char *others;

    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        counts[snapshot->ledgers[i]->state]++;
    }
    for (size_t i = 0; i < snapshot->warnings.count; i++) {
        forbidden += strcmp(snapshot->warnings.list[i].code, "forbidden") == 0;
    }
    others =
        forbidden > 0 ? memory_print(", %zu of other users", forbidden) : memory_print("%s", "");
    doctor_add(
        doctor, DOCTOR_OK, 0, "ledgers",
        memory_print("%zu of running processes, %zu of ended ones, %zu left by killed ones%s",
                     counts[GPULIMIT_STATE_LIVE], counts[GPULIMIT_STATE_EXITED],
                     counts[GPULIMIT_STATE_STALE], others),
        NULL);
    free(others);
    doctor_examine_damage(snapshot, doctor);
}

/* Of a process that nobody asked for by name: one line if all is well with it. */
static void doctor_examine_in_short(const struct doctor_request *request, int32_t pid,
                                    struct doctor *doctor)
{
    struct doctor whole = {0};

    doctor_examine_process(request, pid, &whole);
    if (whole.fails + whole.warns == 0) {
        doctor_add(doctor, DOCTOR_OK, pid, "process", memory_print("runs under its limit"), NULL);
    }
    for (size_t i = 0; i < whole.count; i++) {
        struct doctor_finding *finding = &whole.findings[i];

        if (finding->level != DOCTOR_OK) {
            doctor_add(doctor, finding->level, pid, finding->check, finding->text, finding->advice);
            finding->text = NULL; /* kept by the other */
            finding->advice = NULL;
        }
    }
    doctor_drop(&whole);
}

void doctor_examine(const struct doctor_request *request, struct doctor *doctor)
{
    const struct snapshot *snapshot = request->snapshot;

    *doctor = (struct doctor){0};
    for (size_t i = 0; i < request->folder_count; i++) {
        doctor_examine_folder(request->folders[i], doctor);
    }
    doctor_examine_ledgers(snapshot, doctor);
    for (size_t i = 0; i < request->pid_count; i++) {
        doctor_examine_process(request, request->pids[i], doctor);
    }
    for (size_t i = 0; i < snapshot->ledger_count && request->pid_count == 0; i++) {
        const struct gpulimit_ledger *ledger = snapshot->ledgers[i];

        /* By our own number, if there is one: two containers may each have a process 7. */
        if (ledger->state == GPULIMIT_STATE_LIVE) {
            doctor_examine_in_short(request, ledger->lock_pid > 0 ? ledger->lock_pid : ledger->pid,
                                    doctor);
        }
    }
}
