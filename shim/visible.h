/* SPDX-License-Identifier: MIT
 *
 * Which of the GPUs CUDA will show to this process, and under which ordinals, by
 * CUDA_VISIBLE_DEVICES: for what has to be known before CUDA itself can be asked.
 *
 * As the driver does with CUDA_DEVICE_ORDER=PCI_BUS_ID. Its default, FASTEST_FIRST, is the same
 * order where all cards are alike; where they are not, nobody but CUDA knows it.
 *
 * No state. Any thread.
 */
#ifndef SHIM_VISIBLE_H
#define SHIM_VISIBLE_H

#include <stdbool.h>

enum { VISIBLE_GPUS = 64, VISIBLE_UUID_BYTES = 48 };

/* The GPUs of the machine that the process may use, in PCI order, each as visible_uuid writes it.
 */
struct visible_gpus {
    unsigned count;
    char uuids[VISIBLE_GPUS][VISIBLE_UUID_BYTES];
};

/* Writes a UUID in the one form in which two can be compared, "GPU-" and small letters: CUDA and
 * NVML differ in what they put before that of a MIG instance. Returns false if it is none. */
bool visible_uuid(const char *text, char uuid[VISIBLE_UUID_BYTES]);

/* Returns the ordinal that CUDA gives a GPU, or -1 if it hides it. list: the value of
 * CUDA_VISIBLE_DEVICES, NULL if it is not set. */
int visible_ordinal(const char *list, const struct visible_gpus *gpus, const char *uuid);

#endif
