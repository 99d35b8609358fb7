/* SPDX-License-Identifier: MIT
 *
 * What the preload tests share. Each is an ordinary CUDA program, linked with the simulated driver
 * and run with libgpulimit.so preloaded, on a device of 8 GiB of its own and under
 * GPU_LIMIT_MB=1024.
 */
#ifndef TESTS_PRELOAD_H
#define TESTS_PRELOAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>

#include "gpulimit/region.h"
#include "simgpu.h"

#define MIB(_count) ((uint64_t)(_count) << 20)

#define assert_ok(_call) assert_int_equal(_call, CUDA_SUCCESS)

/* Group fixture: cuInit, the primary context of device 0 made current. */
int preload_set_up(void **state);

/* What the ledger's peak may be at most: the limit, unless a test says otherwise. */
extern uint64_t preload_peak_bytes;

/* Test fixture, afterwards: nothing is held on device 0, by the program's view, the ledger's and
 * the device's. */
int preload_assert_clean(void **state);

/* Bytes that the program still may take on device 0: the free figure of cuMemGetInfo. */
uint64_t preload_free(void);

/* What device 0 has given this process, its context apart. */
uint64_t preload_device_bytes(void);

/* Finds the file of this process's own ledger. Returns false if there is none. */
enum { PRELOAD_PATH_BYTES = 512 };
bool preload_find_ledger(char path[PRELOAD_PATH_BYTES]);

/* This process's own ledger, as a reader would map it; device 0's counters in it. NULL if there is
 * none. */
const struct gpulimit_header *preload_ledger(void);
const struct gpulimit_device *preload_device(void);

CUmemAllocationProp preload_device_prop(void); /* pinned, on device 0 */

#endif
