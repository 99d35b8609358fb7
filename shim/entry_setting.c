/* SPDX-License-Identifier: MIT
 *
 * cuCtxSetLimit, by which a context takes memory outside any allocation: 17 GB at once for a stack
 * of 64 KiB a thread (measured, H200). A setting that cannot fit is refused before the driver sees
 * it.
 */
#include "blocks.h"
#include "driver.h"
#include "entry.h"
#include "limit_overhead.h"

/* No thread can have a larger stack, by the hardware: the driver refuses it for that reason. */
#define ENTRY_STACK_MAX (512u << 10)

/* What the setting takes at a value. The stack is taken at once, for each thread that the device
 * can run; heap and fifo by the first kernel that uses them, which nobody can refuse any more.
 * Other settings take little. */
static uint64_t entry_setting_bytes(CUlimit limit, size_t value, unsigned device)
{
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE)
        return value;
    if (limit != CU_LIMIT_STACK_SIZE || value > ENTRY_STACK_MAX)
        return 0;
    return blocks_most(value * driver_resident_threads(device));
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct driver_place place;
    struct ticket ticket;
    size_t before, after;
    if (!entry_enter())
        return real.cuCtxSetLimit(limit, value);
    if ((unsigned)limit >= LIMIT_SETTINGS || !driver_here(&place) ||
        real.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS)
        return entry_pass(real.cuCtxSetLimit(limit, value));
    uint64_t has = entry_setting_bytes(limit, before, place.device);
    uint64_t wants = entry_setting_bytes(limit, value, place.device);
    if (!limit_reserve_overhead(&ticket, place.device, (uint64_t)place.context, API_cuCtxSetLimit,
                                wants > has ? wants - has : 0))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuCtxSetLimit(limit, value);
    if (result == CUDA_SUCCESS && real.cuCtxGetLimit(&after, limit) == CUDA_SUCCESS)
        limit_commit_overhead(&ticket, (unsigned)limit,
                              (int64_t)(entry_setting_bytes(limit, after, place.device) - has));
    else
        limit_cancel(&ticket);
    guard_leave();
    return result;
}
