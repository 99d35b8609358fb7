// SPDX-License-Identifier: MIT
//
// The control interface of simgpu.h.

#include "simgpu.h"

#include "process.h"
#include "state.h"
#include "vmm.h"

uint64_t simgpu_calls(const char *symbol)
{
    return symbols_calls(symbol);
}

void simgpu_fail_next(const char *symbol, int result)
{
    symbols_fail_after(symbol, 0, (CUresult)result);
}

void simgpu_fail_after(const char *symbol, unsigned calls, int result)
{
    symbols_fail_after(symbol, calls, (CUresult)result);
}

static uint64_t control_read(int device, uint64_t (*figure)(unsigned))
{
    uint64_t bytes = 0;

    process_lock();
    if (device >= 0 && device < (int)CONFIG_DEVICES_MAX && state_open()) {
        vmm_collect();
        bytes = figure((unsigned)device);
    }
    process_unlock();
    return bytes;
}

uint64_t simgpu_device_used(int device)
{
    return control_read(device, state_used_bytes);
}

uint64_t simgpu_process_used(int device)
{
    return control_read(device, state_own_bytes);
}

uint64_t simgpu_process_peak(int device)
{
    return control_read(device, state_take_peak);
}
