/* SPDX-License-Identifier: MIT
 *
 * What programs that ask NVML share: the figures of a device, and whether all who tell them say the
 * same.
 */
#ifndef TESTS_PRELOAD_NVML_ASK_H
#define TESTS_PRELOAD_NVML_ASK_H

#include "nvml_api.h"

#include <cuda.h>
#include <stdbool.h>

/* Both versions of a device's figures. Returns false if they are not one and the same. */
bool nvml_ask(nvmlDevice_t device, nvmlMemory_t *memory);

/* Whether NVML and cuMemGetInfo, which is asked of the current device, say the same. */
bool nvml_agrees(nvmlDevice_t device);

/* NVML's handle of its own device of that index, and of CUDA's of that ordinal. */
nvmlDevice_t nvml_device(unsigned index);
nvmlDevice_t nvml_device_of(CUdevice ordinal);

#endif
