/* SPDX-License-Identifier: MIT
 *
 * cuCtxSetLimit, by which a context takes memory outside any allocation: 17 GB at once for a stack
 * of 64 KiB a thread (measured, H200). A setting that cannot fit is refused before the driver sees
 * it. What a stack took is measured as overhead; a heap or printf buffer is taken later.
 */
#include "blocks.h"
#include "driver.h"
#include "entry.h"
#include "limit_promises.h"
#include "truth.h"

/* No thread can have a larger stack, by the hardware: the driver refuses it for that reason. */
#define ENTRY_STACK_MAX (512u << 10)

static bool entry_is_promise(CUlimit limit)
{
    return limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE;
}

/* What the setting takes at a value. The stack is taken at once, for each thread that the device
 * can run; heap and fifo by the first kernel that uses them, which nobody can refuse any more.
 * Other settings take little. */
static uint64_t entry_setting_bytes(CUlimit limit, size_t value, unsigned device)
{
    if (entry_is_promise(limit))
        return value;
    if (limit != CU_LIMIT_STACK_SIZE || value > ENTRY_STACK_MAX)
        return 0;
    return blocks_most(value * driver_resident_threads(device));
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct driver_place place;
    struct truth_call call;
    size_t before, after;
    if (!entry_enter())
        return real.cuCtxSetLimit(limit, value);
    if ((unsigned)limit >= LIMIT_SETTINGS || !driver_here(&place) ||
        real.cuCtxGetLimit(&before, limit) != CUDA_SUCCESS)
        return entry_pass(real.cuCtxSetLimit(limit, value));
    uint64_t has = entry_setting_bytes(limit, before, place.device);
    uint64_t wants = entry_setting_bytes(limit, value, place.device);
    if (!truth_begin(&call, LIMIT_SETTING, place.device, API_cuCtxSetLimit,
                     wants > has ? wants - has : 0))
        return entry_pass(CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = real.cuCtxSetLimit(limit, value);
    if (result != CUDA_SUCCESS) {
        truth_cancel(&call, result);
        return entry_pass(result);
    }
    int64_t promise = 0;
    if (entry_is_promise(limit) && real.cuCtxGetLimit(&after, limit) == CUDA_SUCCESS)
        promise = (int64_t)(after - before);
    limit_promise(place.device, (uint64_t)place.context, (unsigned)limit, promise);
    if (promise > 0) {
        limit_cancel(&call.ticket); /* it is what has been promised */
        call.ticket.held_bytes = 0;
    }
    if (!truth_settle(&call)) {
        real.cuCtxSetLimit(limit, before);
        limit_promise(place.device, (uint64_t)place.context, (unsigned)limit, -promise);
        truth_give_up(&call);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    guard_leave();
    return result;
}
