/* SPDX-License-Identifier: MIT
 *
 * One process's limit, for doctor.h: what it is on each GPU, who set it, whether it holds, and
 * whether the card itself has less.
 */
#include "doctor.h"

#include <stdlib.h>

#include "memory.h"
#include "text.h"

/* "GPU_LIMIT_MB=0=1G, group lab; counted is ...", for the caller to free(). */
static char *limit_describe(const struct gpulimit_ledger *ledger)
{
    bool has_group = ledger->group[0] != '\0';

    return memory_print("GPU_LIMIT_MB=%s%s%s; counted is %s", ledger->limit_text,
                        has_group ? ", group " : "", ledger->group,
                        ledger->count_mode == GPULIMIT_COUNT_PROCESS
                            ? "what the driver holds for the process"
                            : "what the program asked for");
}

/* Code that kernels load, and stacks that they need, cannot be refused. */
static void limit_examine_excess(const struct gpulimit_ledger_device *device, int32_t pid,
                                 struct doctor *doctor)
{
    char used[TEXT_CELL_BYTES];
    char limit[TEXT_CELL_BYTES];

    if (device->charged_bytes <= device->limit_bytes) {
        return;
    }
    text_print_bytes(device->charged_bytes, false, used);
    text_print_bytes(device->limit_bytes, false, limit);
    doctor_add(doctor, DOCTOR_FAIL, pid, "limit",
               memory_print("%s are held on GPU %u, more than its limit of %s", used,
                            device->gpu_index, limit),
               memory_print("Code of kernels and stacks that they need come without being asked "
                            "for. Until it fits again, every allocation is refused: free some, or "
                            "set a larger limit."));
}

static void limit_examine_device(const struct gpulimit_ledger_device *device,
                                 const char *description, int32_t pid, struct doctor *doctor)
{
    char cell[TEXT_CELL_BYTES];

    text_print_bytes(device->limit_bytes, false, cell);
    if (device->limit_bytes == 0) {
        doctor_add(doctor, DOCTOR_OK, pid, "limit",
                   memory_print("nothing is allowed on GPU %u, which is not named in it (%s)",
                                device->gpu_index, description),
                   memory_print("To allow some, add a limit for it, or for all others with *=."));
    } else {
        doctor_add(doctor, DOCTOR_OK, pid, "limit",
                   memory_print("%s on GPU %u (%s)",
                                device->limit_bytes == GPULIMIT_NO_LIMIT ? "none" : cell,
                                device->gpu_index, description),
                   NULL);
    }
    limit_examine_excess(device, pid, doctor);
}

static void limit_examine_card(const struct gpulimit_ledger_device *device, int32_t pid,
                               struct doctor *doctor)
{
    if (device->driver_denials == 0) {
        return;
    }
    doctor_add(doctor, DOCTOR_WARN, pid, "card",
               memory_print("the driver itself refused %llu request%s on GPU %u that the limit had "
                            "let pass",
                            (unsigned long long)device->driver_denials,
                            device->driver_denials == 1 ? "" : "s", device->gpu_index),
               memory_print("The card was full, most likely. See who holds it: gpulimit-stat, "
                            "nvidia-smi"));
}

void doctor_examine_limit(const struct gpulimit_ledger *ledger, int32_t pid, const char *command,
                          struct doctor *doctor)
{
    char *description = limit_describe(ledger);

    if (ledger->limit_text[0] == '\0') {
        doctor_add(doctor, DOCTOR_WARN, pid, "limit",
                   memory_print("none: GPU_LIMIT_MB was not set, so nothing is refused"),
                   memory_print("Start it with: gpulimit-run -m 1G -- %s", command));
    } else if (ledger->device_count == 0) {
        doctor_add(doctor, DOCTOR_OK, pid, "limit",
                   memory_print("no GPU used yet (%s)", description), NULL);
    }
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        if (ledger->limit_text[0] != '\0') {
            limit_examine_device(&ledger->devices[i], description, pid, doctor);
        }
        limit_examine_card(&ledger->devices[i], pid, doctor);
    }
    free(description);
}
