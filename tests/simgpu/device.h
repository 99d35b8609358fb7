/* SPDX-License-Identifier: MIT
 *
 * Who the simulated GPUs are: UUID, PCI address, and which of them CUDA_VISIBLE_DEVICES shows.
 * Shared by libcuda.so.1 and libnvidia-ml.so.1, so that both name a GPU alike. A `gpu` is an index
 * in PCI order, as NVML counts; CUDA's ordinals are indices into device_list_visible's answer.
 */
#ifndef SIMGPU_DEVICE_H
#define SIMGPU_DEVICE_H

#include "config.h"

#define DEVICE_UUID_BYTES 48u

/* "GPU-...", or "MIG-..." of a part of one. */
void device_format_uuid(unsigned gpu, bool is_mig, char text[DEVICE_UUID_BYTES]);
void device_fill_uuid(unsigned gpu, unsigned char bytes[16]);
unsigned device_pci_bus(unsigned gpu);

/* The gpu that a text names by its UUID, or by any beginning of one that is no other's; by its PCI
 * address, with or without a domain. -1: none of the configured. */
int device_find_uuid(const struct config *config, const char *text, unsigned length);
int device_find_pci(unsigned gpus, const char *text);

/* Fills visible[] with the gpus that CUDA_VISIBLE_DEVICES names, in its order, and returns their
 * number. As in the driver, the list ends at the first name that is not a device, and naming one
 * twice shows none. */
unsigned device_list_visible(const struct config *config, unsigned *visible);

#endif
