/* SPDX-License-Identifier: MIT
 *
 * What the tests of the simulated GPU share: a context, what a step took of the device, and child
 * processes.
 */
#ifndef SIMGPU_FIXTURE_H
#define SIMGPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>

#include "simgpu.h"

#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)

#define assert_ok(_call) assert_int_equal(_call, CUDA_SUCCESS)

/* For code that runs in a child process, where cmocka's asserts mean nothing: such functions return
 * 0, or the line that went wrong. */
#define expect(_condition)                                                                         \
    do {                                                                                           \
        if (!(_condition))                                                                         \
            return __LINE__;                                                                       \
    } while (0)

/* Group fixture: cuInit, the primary context of device 0 made current. */
int fixture_set_up(void **state);

/* What this process has taken of device 0 since the last call, in MiB; rounded towards 0. */
int64_t fixture_took(void);

/* fork, but the child dies with its parent: a case that fails leaves nobody behind. */
int fixture_fork(void);

/* Runs the function in a forked child and returns its result; -signal if it was killed. */
int fixture_run_child(int (*function)(void));

/* Starts a child that runs the function and then waits to be killed. Returns its pid once the
 * function is done, or -1 if it failed. */
int fixture_start_child(int (*function)(void));
void fixture_kill_child(int pid); /* by SIGKILL, and waits for it */

CUmemAllocationProp fixture_device_prop(void); /* pinned, on device 0, exportable */
CUmemoryPool fixture_create_pool(uint64_t max_bytes, uint64_t threshold_bytes);
uint64_t fixture_reserved(CUmemoryPool pool); /* MiB */

#endif
