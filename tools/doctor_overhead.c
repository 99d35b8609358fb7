/* SPDX-License-Identifier: MIT
 *
 * One process's overhead, for doctor.h: what its figure rests on, and whether NVML agrees with the
 * ledger at this moment.
 */
#include "doctor.h"

#include <stdlib.h>

#include "memory.h"
#include "text.h"
#include "untracked.h"

/* The driver takes memory in pieces of this size: a single one is nothing that anybody could name.
 */
#define DOCTOR_UNTRACKED_BYTES ((int64_t)2 << 20)

/* What NVML says of the process here is all of it overhead, where nobody measures that there. */
static void overhead_explain_off(const struct gpulimit_ledger *ledger,
                                 const struct gpulimit_ledger_device *device, int32_t pid,
                                 struct doctor *doctor)
{
    char *amount = NULL;
    int64_t bytes;

    if (untracked_measure(ledger, device, &bytes) && bytes > 0) {
        char cell[TEXT_CELL_BYTES];

        text_print_bytes((uint64_t)bytes, false, cell);
        amount = memory_print(", %s now,", cell);
    }
    doctor_add(doctor, DOCTOR_WARN, pid, "overhead",
               memory_print("not measured on GPU %u, as the process has no NVML: context, code and "
                            "streams%s are not counted",
                            device->gpu_index, amount ? amount : ""),
               memory_print("Let it find libnvidia-ml.so.1; in a container: "
                            "NVIDIA_DRIVER_CAPABILITIES=compute,utility."));
    free(amount);
}

static void overhead_explain_delta(const struct gpulimit_ledger_device *device, const char *cell,
                                   int32_t pid, struct doctor *doctor)
{
    doctor_add(doctor, DOCTOR_WARN, pid, "overhead",
               memory_print("%s on GPU %u, by what the card had less after the calls known to take "
                            "it: NVML does not list this process (pid namespace?)",
                            cell, device->gpu_index),
               memory_print("What the driver takes later, as for a kernel's code at its first run, "
                            "is not seen. In the host's pid namespace it would be (docker run "
                            "--pid=host)."));
}

static void overhead_examine_rest(const struct gpulimit_ledger *ledger,
                                  const struct gpulimit_ledger_device *device, int32_t pid,
                                  struct doctor *doctor)
{
    const char *causes =
        device->truth_source == GPULIMIT_TRUTH_DELTA
            ? "Likely: code of kernels that ran for the first time."
            : "Likely: code that kernels have loaded since the library last looked (its next "
              "allocation looks again), OpenGL or Vulkan, or a way to the driver that cannot be "
              "seen (RTLD_DEEPBIND, dlmopen).";
    char cell[TEXT_CELL_BYTES];
    int64_t bytes;

    if (!untracked_measure(ledger, device, &bytes)) {
        return; /* nobody knows, and nothing follows from that */
    }
    text_print_bytes(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, false, cell);
    if (bytes > DOCTOR_UNTRACKED_BYTES) {
        doctor_add(doctor, DOCTOR_WARN, pid, "untracked",
                   memory_print("%s on GPU %u that NVML sees and the ledger does not explain", cell,
                                device->gpu_index),
                   memory_print("%s", causes));
    } else {
        doctor_add(doctor, DOCTOR_OK, pid, "untracked",
                   memory_print("%s%s on GPU %u: NVML's figure less what is counted",
                                bytes < 0 ? "-" : "", cell, device->gpu_index),
                   NULL);
    }
}

static void overhead_examine_device(const struct gpulimit_ledger *ledger,
                                    const struct gpulimit_ledger_device *device, int32_t pid,
                                    struct doctor *doctor)
{
    char cell[TEXT_CELL_BYTES];

    text_print_bytes(device->overhead_bytes, false, cell);
    switch (device->truth_source) {
    case GPULIMIT_TRUTH_OFF:
    case GPULIMIT_TRUTHS:
        overhead_explain_off(ledger, device, pid, doctor);
        return;
    case GPULIMIT_TRUTH_DELTA:
        overhead_explain_delta(device, cell, pid, doctor);
        break;
    case GPULIMIT_TRUTH_NVML:
        doctor_add(
            doctor, DOCTOR_OK, pid, "overhead",
            memory_print("%s on GPU %u, by NVML's figure for the process", cell, device->gpu_index),
            NULL);
        break;
    }
    overhead_examine_rest(ledger, device, pid, doctor);
}

void doctor_examine_overhead(const struct gpulimit_ledger *ledger, int32_t pid,
                             struct doctor *doctor)
{
    if (ledger->count_mode != GPULIMIT_COUNT_PROCESS) {
        return; /* it counts for nothing there */
    }
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        overhead_examine_device(ledger, &ledger->devices[i], pid, doctor);
    }
}
