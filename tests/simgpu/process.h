/* SPDX-License-Identifier: MIT
 *
 * The driver within one process: whether it is initialised, the devices it sees, the one lock that
 * every call holds, and the rules that hold for every call before it does its own work.
 */
#ifndef SIMGPU_PROCESS_H
#define SIMGPU_PROCESS_H

#include "config.h"
#include "symbols.h"

struct process {
    struct config config;
    unsigned visible;                  /* devices that CUDA numbers 0 .. visible-1 */
    unsigned gpus[CONFIG_DEVICES_MAX]; /* which gpu each of those is */
};

/* Valid once cuInit has succeeded, and constant from then on. */
extern struct process process;

enum process_call {
    PROCESS_SAFE,   /* legal while a stream is captured */
    PROCESS_UNSAFE, /* answers 900 then, and spoils the capture */
    PROCESS_ALWAYS, /* works before cuInit as well */
};

/* First line of every exported function: counts the call, answers an injected failure or 3 before
 * cuInit and in forked children, takes the lock, and looks at captures. The lock is held only after
 * CUDA_SUCCESS. */
CUresult process_enter(enum symbol symbol, enum process_call call);

/* Last line: drops the lock. Returns its argument. */
CUresult process_leave(CUresult result);

/* What cuInit does; the lock is held. */
CUresult process_start(void);

/* For the control interface, which may come before cuInit. */
void process_lock(void);
void process_unlock(void);

/* CUDA's ordinal as a gpu. false: there is no such device. */
bool process_find_gpu(CUdevice ordinal, unsigned *gpu);

#endif
