/* SPDX-License-Identifier: MIT
 *
 * One process's part of doctor.h: the library in it, and the ledger it keeps. The first thing that
 * is wrong is what the others follow from, so it ends the examination. Its limit: doctor_limit.c.
 */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "memory.h"
#include "view.h"

#define DOCTOR_START "gpulimit-run -m 1G -- "

/* A process under examination. */
struct patient {
    struct doctor *doctor;
    const struct doctor_request *request;
    int32_t pid;                          /* as it was asked for */
    struct process process;               /* by our numbers */
    const struct gpulimit_ledger *ledger; /* NULL: none. The live one, else the last one */
};

#define PATIENT_ADD(_patient, _level, _check, _text, _advice)                                      \
    doctor_add((_patient)->doctor, _level, (_patient)->pid, _check, _text, _advice)

static const struct gpulimit_ledger *patient_find_ledger(const struct snapshot *snapshot,
                                                         int32_t pid)
{
    const struct gpulimit_ledger *found = NULL;

    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        const struct gpulimit_ledger *ledger = snapshot->ledgers[i];

        if (view_is_pid(ledger, pid) && (!found || ledger->state == GPULIMIT_STATE_LIVE ||
                                         (found->state != GPULIMIT_STATE_LIVE &&
                                          ledger->created_time_ns > found->created_time_ns))) {
            found = ledger;
        }
    }
    return found;
}

static bool patient_is_live(const struct patient *patient)
{
    return patient->ledger && patient->ledger->state == GPULIMIT_STATE_LIVE;
}

/* The command to start it with, for advice. */
static const char *patient_get_command(const struct patient *patient)
{
    const char *command = patient->process.command;

    return command && command[0] != '\0' ? command : "COMMAND";
}

/* Says why the library is not in a process that we may look into. */
static void patient_explain_absence(struct patient *patient)
{
    const struct process *process = &patient->process;
    char *restart = memory_print("Start it with: " DOCTOR_START "%s", patient_get_command(patient));

    if (process->is_static) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded: the program is linked statically with libc, so the "
                                 "dynamic linker, which would load it, is not there"),
                    memory_print("Link the program dynamically with libc. The static CUDA runtime "
                                 "does no harm."));
    } else if (process->is_secure) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded: the program runs set-uid, set-gid or with file "
                                 "capabilities, so the dynamic linker ignores LD_PRELOAD"),
                    memory_print("Run it as the user that it is to be, without these."));
    } else if (process->is_musl) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded: the program runs on musl, the library on glibc"),
                    memory_print("Use a build or a container image of the program for glibc."));
    } else if (!process->preload || process->preload[0] == '\0') {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded: LD_PRELOAD was not set when the process was started"),
                    restart);
        return;
    } else if (!strstr(process->preload, PROCESS_LIBRARY)) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded: LD_PRELOAD was '%s' when the process was started",
                                 process->preload),
                    restart);
        return;
    } else if (process->is_missing) {
        PATIENT_ADD(
            patient, DOCTOR_FAIL, "library",
            memory_print("not loaded: LD_PRELOAD is '%s', but the process sees no such file",
                         process->preload),
            memory_print("Name its full path. In a container, mount it there."));
    } else {
        PATIENT_ADD(patient, DOCTOR_FAIL, "library",
                    memory_print("not loaded, although LD_PRELOAD is '%s'", process->preload),
                    memory_print("See what the dynamic linker says: LD_DEBUG=libs %s",
                                 patient_get_command(patient)));
    }
    free(restart);
}

/* Returns whether it makes sense to go on. */
static bool patient_examine_library(struct patient *patient)
{
    const struct process *process = &patient->process;

    if (!process->is_readable) {
        PATIENT_ADD(patient, DOCTOR_WARN, "library",
                    memory_print("this user may not see what is loaded into the process"),
                    memory_print("Ask as the user whose process it is, or as root."));
        return true;
    }
    if (!process->library) {
        patient_explain_absence(patient);
        return false;
    }
    if (process->is_replaced) {
        PATIENT_ADD(
            patient, DOCTOR_WARN, "library",
            memory_print("%s is loaded, but the file has been replaced since", process->library),
            memory_print("Start the process again to have the new one."));
    } else {
        PATIENT_ADD(patient, DOCTOR_OK, "library", memory_print("%s is loaded", process->library),
                    NULL);
    }
    return true;
}

static bool patient_is_same_folder(const char *path, const char *other)
{
    struct stat first, second;

    return stat(path, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Where we find the folder that the process keeps its ledger in, for the caller to free(); NULL if
 * that has been looked at. A container's /dev/shm is not ours. */
static char *patient_find_folder(const struct patient *patient)
{
    const char *own = patient->process.folder;
    const char *folder = own && own[0] != '\0' ? own : "/dev/shm";
    char *seen = memory_print("/proc/%d/root%s", patient->process.pid, folder);
    char *found = NULL;
    bool is_looked_at = false;

    for (size_t i = 0; i < patient->request->folder_count; i++) {
        is_looked_at |= patient_is_same_folder(patient->request->folders[i], seen);
    }
    if (!is_looked_at) {
        found = memory_print("%s", patient_is_same_folder(folder, seen) ? folder : seen);
    }
    free(seen);
    return found;
}

/* A process with the library but without a ledger. */
static void patient_explain_no_ledger(struct patient *patient)
{
    const struct process *process = &patient->process;
    char *folder;

    if (!process->is_readable) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "ledger",
                    memory_print("none that this user can read: whether the limit is in force "
                                 "cannot be seen"),
                    memory_print("Either it does not run under the library, or has not used CUDA "
                                 "yet, or keeps its ledger elsewhere (--ledger-dir)."));
        return;
    }
    folder = patient_find_folder(patient);
    if (!process->driver) {
        PATIENT_ADD(patient, DOCTOR_WARN, "ledger",
                    memory_print("none yet: the process has not loaded the CUDA driver"),
                    memory_print("Look again when it uses CUDA. Until then there is nothing to "
                                 "limit."));
    } else if (folder) {
        PATIENT_ADD(patient, DOCTOR_WARN, "ledger",
                    memory_print("none here: the process keeps its own in %s", folder),
                    memory_print("Look there: gpulimit-stat doctor -p %d --ledger-dir %s",
                                 patient->pid, folder));
    } else {
        PATIENT_ADD(patient, DOCTOR_FAIL, "ledger",
                    memory_print("none, although the process has loaded the CUDA driver"),
                    memory_print("If it has called CUDA, its first message on stderr says why: its "
                                 "settings are wrong (GPU_LIMIT_MB %s%s), or the folder cannot be "
                                 "written or is full.",
                                 process->limit ? "was " : "was not set",
                                 process->limit ? process->limit : ""));
    }
    free(folder);
}

static void patient_examine_versions(struct patient *patient)
{
    const char *version = patient->ledger->library_version;

    if (strcmp(version, GPULIMIT_VERSION) == 0) {
        PATIENT_ADD(patient, DOCTOR_OK, "version",
                    memory_print("library and gpulimit-stat are both %s", version), NULL);
    } else {
        PATIENT_ADD(patient, DOCTOR_WARN, "version",
                    memory_print("the library is %s, gpulimit-stat is " GPULIMIT_VERSION, version),
                    memory_print("Use those of one release: the older one may not know all that "
                                 "the newer one does."));
    }
}

static void patient_examine_hooks(struct patient *patient)
{
    uint64_t allocations = 0;
    uint64_t denials = 0;

    for (uint32_t i = 0; i < patient->ledger->device_count; i++) {
        allocations += patient->ledger->devices[i].allocations_total;
        denials += patient->ledger->devices[i].denials;
    }
    if (allocations + denials > 0) {
        PATIENT_ADD(patient, DOCTOR_OK, "hooks",
                    memory_print("allocations pass through the library: %llu so far, and %llu "
                                 "refused",
                                 (unsigned long long)allocations, (unsigned long long)denials),
                    NULL);
    } else {
        PATIENT_ADD(patient, DOCTOR_WARN, "hooks",
                    memory_print("no allocation has passed through the library yet"),
                    memory_print("If nvidia-smi shows more than a context for it, it reaches the "
                                 "driver by a way that cannot be seen (RTLD_DEEPBIND, dlmopen)."));
    }
}

static void patient_examine_gaps(struct patient *patient)
{
    const struct gpulimit_ledger *ledger = patient->ledger;
    char *names = memory_print("%s", "");

    for (uint32_t i = 0; i < ledger->unknown_count; i++) {
        char *longer = memory_print("%s%s%s", names, i > 0 ? ", " : "", ledger->unknown_names[i]);

        free(names);
        names = longer;
    }
    if (ledger->unknown_count > 0) {
        PATIENT_ADD(
            patient, DOCTOR_WARN, "functions",
            memory_print("the driver is newer than the library, which does not know: %s%s", names,
                         ledger->unknown_count == GPULIMIT_UNKNOWN_NAMES ? ", or more" : ""),
            memory_print("What these take is not counted. Use a newer libgpulimit."));
    }
    free(names);
    if (ledger->entries_unlisted > 0) {
        PATIENT_ADD(
            patient, DOCTOR_WARN, "entries",
            memory_print("%llu live allocations are counted, but not listed: no space for "
                         "the ledger",
                         (unsigned long long)ledger->entries_unlisted),
            memory_print("The limit holds all the same. Make room where %s is.", ledger->path));
    }
}

static void patient_examine_ledger(struct patient *patient)
{
    if (!patient_is_live(patient)) {
        patient_explain_no_ledger(patient);
        return;
    }
    PATIENT_ADD(patient, DOCTOR_OK, "ledger", memory_print("%s", patient->ledger->path), NULL);
    patient_examine_versions(patient);
    doctor_examine_limit(patient->ledger, patient->pid, patient_get_command(patient),
                         patient->doctor);
    doctor_examine_overhead(patient->ledger, patient->pid, patient->doctor);
    patient_examine_hooks(patient);
    patient_examine_gaps(patient);
}

/* Returns whether there is a process to look into. */
static bool patient_examine_life(struct patient *patient)
{
    if (patient->process.exists) {
        PATIENT_ADD(patient, DOCTOR_OK, "process",
                    memory_print("runs: %s", patient_get_command(patient)), NULL);
        return true;
    }
    if (patient_is_live(patient)) {
        PATIENT_ADD(patient, DOCTOR_WARN, "process",
                    memory_print("runs, but in a pid namespace that cannot be seen from here"),
                    memory_print("For the rest, ask inside its container."));
        return true;
    }
    if (patient->ledger) {
        PATIENT_ADD(patient, DOCTOR_FAIL, "process",
                    memory_print("%s", patient->ledger->state == GPULIMIT_STATE_EXITED
                                           ? "has ended"
                                           : "is gone without a word: killed, or crashed"),
                    memory_print("Its last figures: gpulimit-stat -a -p %d", patient->pid));
    } else {
        PATIENT_ADD(patient, DOCTOR_FAIL, "process", memory_print("there is no such process"),
                    memory_print("Processes under the library: gpulimit-stat"));
    }
    return false;
}

/* The number by which we know the process: that of the lock's owner, where the kernel tells. */
static int32_t patient_get_host_pid(const struct patient *patient)
{
    if (patient_is_live(patient)) {
        return patient->ledger->lock_pid; /* 0: not to be seen from here */
    }
    return patient->pid;
}

void doctor_examine_process(const struct doctor_request *request, int32_t pid,
                            struct doctor *doctor)
{
    struct patient patient = {.doctor = doctor, .request = request, .pid = pid};
    int32_t host_pid;

    patient.ledger = patient_find_ledger(request->snapshot, pid);
    host_pid = patient_get_host_pid(&patient);
    if (host_pid > 0) {
        process_look(host_pid, &patient.process);
    }
    if (patient_examine_life(&patient) &&
        (!patient.process.exists || patient_examine_library(&patient))) {
        patient_examine_ledger(&patient);
    }
    process_drop(&patient.process);
}
