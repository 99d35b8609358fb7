/* SPDX-License-Identifier: MIT
 *
 * A program that calls every kind of function that has to do with device memory, and prints what
 * the driver answered and by how many MiB the device's free memory went down. It prints the same on
 * the simulated GPU and on the GPU that it simulates, alone and under libgpulimit.so with a limit
 * that it never reaches; docs/conformance.txt is what it printed on an H200. It holds no
 * expectations of its own.
 *
 *   ANSWER  MOVED  CALL
 *
 * MOVED is "-" where no context could be asked, and a line that begins with ~ has figures that
 * another GPU model may change. No addresses, no totals. It never asks for managed memory beyond
 * what is free, and never launches a graph that cannot be served: on a real GPU that takes the
 * whole card from everybody.
 *
 * It wants a GPU that nobody else uses meanwhile. docs/conformance.txt says how to build it.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/* What outputs hold before a call. */
#define SENTINEL 7u

#define CALL(_call)       report(' ', _call, #_call)
#define CALL_MODEL(_call) report('~', _call, #_call)  /* its figures are this GPU model's */
#define CALL_ABOUT(_call) report_about(_call, #_call) /* MOVED to the next 100 MiB */

/* A call that sets the scene; whatever went wrong shows in what follows. */
#define QUIET(_call) ((void)(_call))

/* Whether an output was left alone, set to 0, or to something. */
#define OUTPUT(_value)       report_output(#_value, (uint64_t)(uintptr_t)(_value))
#define NUMBER(_value)       report_number(' ', #_value, (uint64_t)(_value))
#define NUMBER_MODEL(_value) report_number('~', #_value, (uint64_t)(_value))

void section(const char *title); /* forgets what moved before */
CUresult report(char mark, CUresult result, const char *call);
CUresult report_about(CUresult result, const char *call);
void report_output(const char *name, uint64_t value);
void report_number(char mark, const char *name, uint64_t value);
void forget(void); /* what moved so far */

extern CUstream stream; /* non-blocking, of the primary context */

void check_before_start(void);
void check_linear(void);
void check_pitch(void);
void check_managed(void);
void check_queries(void);
void check_async(void);
void check_pools(void);
void check_vmm(void);
void check_arrays(void);
void check_capture(void);
void check_graphs(void);
void check_limits(void);
void check_code(void);
void check_shares(void);
void check_contexts(void);
void check_reset(void); /* last: the primary context is not what it was */

#endif
