/* SPDX-License-Identifier: MIT
 *
 * The machine's part of doctor.h: its ledgers, and which processes to look at.
 */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "view.h"

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

/* How many warnings of the snapshot have this code. */
static size_t doctor_count_warnings(const struct snapshot *snapshot, const char *code)
{
    size_t count = 0;

    for (size_t i = 0; i < snapshot->warnings.count; i++) {
        count += strcmp(snapshot->warnings.list[i].code, code) == 0;
    }
    return count;
}

/* What to do about so many ledgers of each state; NULL: nothing. */
static char *doctor_advise_on_ledgers(const struct doctor *doctor, size_t ended)
{
    if (doctor->is_idle && ended == 0) {
        return memory_print("Nothing has used CUDA under the library here. To start something: "
                            "gpulimit-run -m 1G -- COMMAND");
    }
    if (ended > 0) {
        return memory_print("New processes remove those of ended and killed ones, after a day at "
                            "the latest. Their last figures: gpulimit-stat -a");
    }
    return NULL;
}

static void doctor_examine_ledgers(const struct doctor_request *request, struct doctor *doctor)
{
    const struct snapshot *snapshot = request->snapshot;
    size_t forbidden = doctor_count_warnings(snapshot, "forbidden");
    size_t counts[] = {
        [GPULIMIT_STATE_LIVE] = 0, [GPULIMIT_STATE_EXITED] = 0, [GPULIMIT_STATE_STALE] = 0};
    char *others;

    if (doctor_count_warnings(snapshot, "folder") == request->folder_count) {
        return; /* nobody has looked */
    }
    for (size_t i = 0; i < snapshot->ledger_count; i++) {
        counts[snapshot->ledgers[i]->state]++;
    }
    doctor->is_idle = counts[GPULIMIT_STATE_LIVE] + forbidden + request->pid_count == 0;
    others =
        forbidden > 0 ? memory_print(", %zu of other users", forbidden) : memory_print("%s", "");
    doctor_add(
        doctor, DOCTOR_OK, 0, "ledgers",
        memory_print("%zu of running processes, %zu of ended ones, %zu left by killed ones%s",
                     counts[GPULIMIT_STATE_LIVE], counts[GPULIMIT_STATE_EXITED],
                     counts[GPULIMIT_STATE_STALE], others),
        doctor_advise_on_ledgers(doctor,
                                 counts[GPULIMIT_STATE_EXITED] + counts[GPULIMIT_STATE_STALE]));
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
    doctor_examine_ledgers(request, doctor);
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
