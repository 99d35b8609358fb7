/* SPDX-License-Identifier: MIT
 *
 * What the rooms of libnvidia-ml.so.1 share: whether it is initialised, and its lock.
 */
#ifndef SIMGPU_NVML_H
#define SIMGPU_NVML_H

#include "config.h"
#include "nvml_api.h"

struct nvml_device {
    unsigned gpu;
};

extern struct config nvml_config; /* constant between init and shutdown */
extern struct nvml_device nvml_devices[CONFIG_DEVICES_MAX];

/* Takes the lock if the library is initialised and, when device is not NULL, it is one of ours.
 *   1, 2: not so, and the lock is not held. */
nvmlReturn_t nvml_enter(void);
nvmlReturn_t nvml_enter_device(const struct nvml_device *device);
nvmlReturn_t nvml_leave(nvmlReturn_t result);

/* 2: no output, 7: it does not fit. */
nvmlReturn_t nvml_copy_text(char *output, unsigned length, const char *text);

#endif
