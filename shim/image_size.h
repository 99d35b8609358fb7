/* SPDX-License-Identifier: MIT
 *
 * What a code image takes at least: its global variables, which the driver makes room for when it
 * loads the image. So a module with a variable larger than what is left is refused before the
 * driver is asked.
 *
 * Code is not counted: a function is loaded when it is first asked for (CUDA_MODULE_LOADING=LAZY,
 * the default). Nor are managed variables, which NVML's figure for a process leaves out. The driver
 * puts the variables of several images into one block of 2 MiB: a small image may find its room
 * taken already.
 *
 * It reads as the driver reads: no length is told, so a damaged image must bound itself. Pure: any
 * thread.
 */
#ifndef SHIM_IMAGE_SIZE_H
#define SHIM_IMAGE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Of an image as cuModuleLoadData takes it: a cubin, PTX, or a fat binary with or without its
 * wrapper. False if it is none of these; then, and where nothing can be known, 0 bytes. Saturates
 * at UINT64_MAX. */
bool image_least_bytes(const void *image, uint64_t *bytes);

#endif
