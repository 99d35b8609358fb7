/* SPDX-License-Identifier: MIT
 *
 * The simulated GPU: a libcuda.so.1 and a libnvidia-ml.so.1 that stand in for NVIDIA's on machines
 * without a GPU, and, below, what tests can ask of them beyond the driver's own interface.
 *
 * Modelled, as measured on an H200 with driver 580.159: what each kind of allocation takes of the
 * device and when it gives it back (linear memory by the 2 MiB block rule, arrays by their tiles,
 * pools and graphs by chunks of 32 MiB, VMM handles and mappings, managed memory, contexts, their
 * stacks and streams, modules, kernels), what dies with a context, what calls answer and leave in
 * their outputs when they fail, and which calls a stream capture forbids. Devices are shared by all
 * processes that name one state file; a killed process's memory comes back. A module image says
 * what it takes: the variables of PTX count, and a text like "simgpu-module globals=268435456
 * code=1048576" may stand for one, or "simgpu-module code=1048576 local=8000 heap" for one with a
 * kernel, whose launch does nothing but take what it needs (image.h has all of it). Not modelled:
 * contents of device memory (a copy to the host gives zeros), what kernels do, peer access, time
 * (every stream is idle at once).
 *
 * Environment, read at cuInit and nvmlInit:
 *   SIMGPU_DEVICES     how many GPUs, 1 to 16 (1)
 *   SIMGPU_MEMORY_MB   of each, in MiB (8192)
 *   SIMGPU_RESERVED_MB which each has besides and keeps for itself, as NVML tells (0)
 *   SIMGPU_CONTEXT_MB  what a context takes (64); 0: nothing, and its streams nothing either
 *   SIMGPU_PROFILE     h200: 143771 MiB, 518 MiB a context (the two above override them), and no
 *                      interface of CUDA 2.x, for which the real one has no 32-bit addresses
 *   SIMGPU_MIG         1: NVML takes each device for a part of a larger one (MIG-<uuid>)
 *   SIMGPU_HIDE_PROCESSES  1: NVML lists no process, as it does in a pid namespace
 *   SIMGPU_HIDE_FIGURES    1: NVML lists processes and knows no figure of them (all ones)
 *   SIMGPU_STATE       the file that says who holds what (/dev/shm/simgpu-<uid>, else in /tmp)
 *
 *   CUDA_VISIBLE_DEVICES counts as for the driver: indices and GPU-<uuid> or MIG-<uuid>
 *   CUDA_MODULE_LOADING    EAGER: a library is loaded into all contexts at once, not at first use
 *
 * The functions below are exported by libcuda.so.1. They may be called from any thread, at any
 * time, before cuInit as well; they count as no call themselves and cost a lock at most. A `device`
 * is numbered as NVML does, whatever CUDA_VISIBLE_DEVICES says. Sizes are bytes.
 */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <stdint.h>

#define SIMGPU_EXPORT __attribute__((visibility("default")))

/* How often this process has called that exported symbol, failures included; 0 for names that are
 * none. */
SIMGPU_EXPORT uint64_t simgpu_calls(const char *symbol);

/* Makes the next call of that symbol, by whichever thread, answer `result` and do nothing; its
 * outputs are left as the driver leaves them on failure. A result of 0 takes the order back.
 * Unknown names are ignored. */
SIMGPU_EXPORT void simgpu_fail_next(const char *symbol, int result);

/* The same, but so many calls go by first. */
SIMGPU_EXPORT void simgpu_fail_after(const char *symbol, unsigned calls, int result);

/* A CUgraphicsResource, as one gets by registering a buffer of OpenGL. NULL: no memory. */
SIMGPU_EXPORT void *simgpu_graphics_resource(void);

/* What all living processes hold on the device. */
SIMGPU_EXPORT uint64_t simgpu_device_used(int device);

/* What this process holds on it: NVML's figure and what that leaves out, told without a context
 * too. */
SIMGPU_EXPORT uint64_t simgpu_process_used(int device);

/* The most that it held at any moment since this was last asked. */
SIMGPU_EXPORT uint64_t simgpu_process_peak(int device);

#endif
