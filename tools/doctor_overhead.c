/* SPDX-License-Identifier: MIT
 *
 * One process's overhead, for doctor.h: what its figure rests on, and whether NVML agrees with the
 * ledger at this moment.
 */
#include "doctor.h"

#include "memory.h"
#include "text.h"
#include "untracked.h"

/* The driver takes memory in pieces of this size: less is nothing that anybody could name. */
#define DOCTOR_UNTRACKED_BYTES ((int64_t)2 << 20)

static void overhead_examine_source(const struct gpulimit_ledger_device *device, int32_t pid,
                                    struct doctor *doctor)
{
    char cell[TEXT_CELL_BYTES];

    text_print_bytes(device->overhead_bytes, false, cell);
    switch (device->truth_source) {
    case GPULIMIT_TRUTH_NVML:
        doctor_add(
            doctor, DOCTOR_OK, pid, "overhead",
            memory_print("%s on GPU %u, by NVML's figure for the process", cell, device->gpu_index),
            NULL);
        break;
    case GPULIMIT_TRUTH_DELTA:
        doctor_add(doctor, DOCTOR_WARN, pid, "overhead",
                   memory_print("%s on GPU %u, by what the card had less after the calls known to "
                                "take it: NVML does not list this process (pid namespace?)",
                                cell, device->gpu_index),
                   memory_print("What the driver takes later, as for a kernel's code at its first "
                                "run, is not seen. In the host's pid namespace it would be "
                                "(docker run --pid=host)."));
        break;
    case GPULIMIT_TRUTH_OFF:
    case GPULIMIT_TRUTHS:
        doctor_add(doctor, DOCTOR_WARN, pid, "overhead",
                   memory_print("not measured on GPU %u, as the process has no NVML: context, code "
                                "and streams are not counted",
                                device->gpu_index),
                   memory_print("Let it find libnvidia-ml.so.1; in a container: "
                                "NVIDIA_DRIVER_CAPABILITIES=compute,utility."));
        break;
    }
}

/* The likeliest first. */
static const char *overhead_get_causes(const struct gpulimit_ledger_device *device)
{
    switch (device->truth_source) {
    case GPULIMIT_TRUTH_OFF:
        return "Context, code and streams, as overhead is not measured.";
    case GPULIMIT_TRUTH_DELTA:
        return "Likely: code of kernels that ran for the first time.";
    case GPULIMIT_TRUTH_NVML:
    case GPULIMIT_TRUTHS:
        break;
    }
    return "Likely: code that kernels have loaded since the library last looked (its next "
           "allocation looks again), OpenGL or Vulkan, or a way to the driver that cannot be seen "
           "(RTLD_DEEPBIND, dlmopen).";
}

static void overhead_examine_rest(const struct gpulimit_ledger *ledger,
                                  const struct gpulimit_ledger_device *device, int32_t pid,
                                  struct doctor *doctor)
{
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
                   memory_print("%s", overhead_get_causes(device)));
    } else {
        doctor_add(doctor, DOCTOR_OK, pid, "untracked",
                   memory_print("%s%s on GPU %u: NVML's figure less what is counted",
                                bytes < 0 ? "-" : "", cell, device->gpu_index),
                   NULL);
    }
}

void doctor_examine_overhead(const struct gpulimit_ledger *ledger, int32_t pid,
                             struct doctor *doctor)
{
    if (ledger->count_mode != GPULIMIT_COUNT_PROCESS) {
        return; /* it counts for nothing there */
    }
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        overhead_examine_source(&ledger->devices[i], pid, doctor);
        overhead_examine_rest(ledger, &ledger->devices[i], pid, doctor);
    }
}
