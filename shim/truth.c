/* SPDX-License-Identifier: MIT
 *
 * When the driver is asked what it holds for the process, and what is made of the answer; see
 * truth.h.
 */
#include "truth.h"

#include "clock.h"
#include "guard.h"
#include "limit_contexts.h"
#include "real.h"
#include "start.h"
#include "truth_card.h"

#include <errno.h>
#include <stdatomic.h>

/* How this process can be seen. That is found out with its first context, and stays. */
enum truth_way { TRUTH_UNKNOWN, TRUTH_BY_PROCESS, TRUTH_BY_CARD };
static _Atomic(enum truth_way) truth_way;

/* Whether a device with a context has been looked at. */
static atomic_bool truth_has_met[BUDGET_DEVICES];

/* Late looks at each device: when the next may be, and how long to wait after it. While overhead
 * moves, code is being loaded, and more will be. */
enum { TRUTH_PAUSE_LEAST_NS = 1000000, TRUTH_PAUSE_MOST_NS = 100000000 };
static _Atomic uint64_t truth_late_ns[BUDGET_DEVICES], truth_pause_ns[BUDGET_DEVICES];

static bool truth_is_counted(unsigned device)
{
    return device < BUDGET_DEVICES && limit_counts_overhead();
}

static bool truth_sees_process(void)
{
    return atomic_load_explicit(&truth_way, memory_order_relaxed) == TRUTH_BY_PROCESS;
}

/* Asks for the process's own figure, and has it taken in. mine: as limit_look_end. Returns false if
 * there is none. */
static bool truth_ask(unsigned device, const struct ticket *mine, bool is_late)
{
    enum { TRIES = 3 };
    for (unsigned i = 0; i < TRIES; i++) {
        struct limit_look look;
        uint64_t bytes = 0;
        limit_look_begin(&look, device);
        bool is_listed = truth_card_process(device, &bytes);
        if (is_listed)
            atomic_store_explicit(&truth_way, TRUTH_BY_PROCESS, memory_order_relaxed);
        else if (!truth_sees_process())
            return false;
        /* A process that was listed and is not has no context left on the device: no overhead
         * either. Memory of pools and of cuMemCreate stays without one. */
        if (limit_look_end(&look, mine, bytes, is_late))
            return true;
    }
    return true;
}

void truth_look(unsigned device)
{
    int saved = errno;
    /* Not before there is a context: NVML would be loaded for a process that may never have one. */
    if (truth_is_counted(device) && truth_sees_process())
        truth_ask(device, NULL, true);
    errno = saved;
}

void truth_meet(unsigned device)
{
    if (device >= BUDGET_DEVICES ||
        atomic_load_explicit(&truth_has_met[device], memory_order_relaxed) ||
        atomic_exchange_explicit(&truth_has_met[device], true, memory_order_relaxed))
        return;
    int saved = errno;
    enum truth_way unknown = TRUTH_UNKNOWN;
    if (truth_is_counted(device) && !truth_ask(device, NULL, false))
        atomic_compare_exchange_strong(&truth_way, &unknown, TRUTH_BY_CARD);
    errno = saved;
}

/* A stream takes little, often nothing, and is made often: far from the limit it is not worth a
 * question. */
static bool truth_is_loose(enum limit_what what, unsigned device)
{
    enum { FAR_BYTES = 64 << 20 };
    uint64_t limit = budget_limit(device), used = budget_used(device);
    return what == LIMIT_STREAM && truth_sees_process() && used < limit && limit - used > FAR_BYTES;
}

void truth_look_late(void)
{
    CUdevice current;
    if (!truth_sees_process() || real.cuCtxGetDevice(&current) != CUDA_SUCCESS ||
        (unsigned)current >= BUDGET_DEVICES)
        return;
    unsigned device = (unsigned)current;
    uint64_t due = atomic_load_explicit(&truth_late_ns[device], memory_order_relaxed);
    uint64_t pause = atomic_load_explicit(&truth_pause_ns[device], memory_order_relaxed);
    uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now < due ||
        !atomic_compare_exchange_strong(&truth_late_ns[device], &due, now + TRUTH_PAUSE_LEAST_NS))
        return;
    uint64_t before = limit_overhead(device);
    truth_look(device);
    pause = limit_overhead(device) != before ? TRUTH_PAUSE_LEAST_NS : 2 * pause;
    if (pause < TRUTH_PAUSE_LEAST_NS)
        pause = TRUTH_PAUSE_LEAST_NS;
    if (pause > TRUTH_PAUSE_MOST_NS)
        pause = TRUTH_PAUSE_MOST_NS;
    atomic_store_explicit(&truth_pause_ns[device], pause, memory_order_relaxed);
    atomic_store_explicit(&truth_late_ns[device], now + pause, memory_order_relaxed);
}

/* Where the process itself cannot be seen, one call at a time on the device, of all processes. */
static void truth_open(struct truth_call *call)
{
    unsigned device = call->ticket.device;
    call->turn = -1;
    call->has_card = false;
    call->expected_bytes = call->moved_bytes = 0;
    call->guess_bytes = 0;
    if (!truth_is_counted(device))
        return;
    int saved = errno;
    if (!truth_sees_process())
        call->turn = truth_card_take_turn(device);
    limit_look_begin(&call->look, device);
    call->after = call->look;
    if (!truth_sees_process()) {
        call->has_card = truth_card_used(device, &call->card_bytes);
        limit_look_seen(&call->look, &call->ticket);
    }
    errno = saved;
}

static void truth_close(struct truth_call *call)
{
    truth_card_give_turn(call->turn);
    call->turn = -1;
}

static void truth_measure(struct truth_call *call)
{
    unsigned device = call->ticket.device;
    enum truth_way unknown = TRUTH_UNKNOWN;
    uint64_t now = 0;
    if (truth_sees_process())
        limit_take_overhead(&call->ticket);
    if (truth_ask(device, NULL, false))
        return;
    /* Unless another thread, which was the first to load NVML, has found out better meanwhile. */
    atomic_compare_exchange_strong(&truth_way, &unknown, TRUTH_BY_CARD);
    limit_look_begin(&call->after, device);
    if (call->has_card && truth_card_used(device, &now)) {
        limit_look_seen(&call->after, &call->ticket);
        call->moved_bytes = limit_look_moved(
            &call->look, &call->after, (int64_t)(now - call->card_bytes), call->expected_bytes);
    } else {
        limit_look_guessed(device, (int64_t)call->guess_bytes);
    }
    call->card_bytes = now;
}

/* Without a context there is no overhead: where only changes are known, that puts right what was
 * guessed or missed. */
static void truth_look_at_last(unsigned device)
{
    unsigned int flags;
    int is_active = 1;
    if (!truth_sees_process() &&
        real.cuDevicePrimaryCtxGetState((CUdevice)device, &flags, &is_active) == CUDA_SUCCESS &&
        !is_active && !limit_has_context(device))
        limit_look_empty(device);
}

bool truth_begin(struct truth_call *call, enum limit_what what, unsigned device, enum api api,
                 uint64_t bytes)
{
    call->moved_bytes = 0;
    if (!truth_is_counted(device)) {
        call->ticket = (struct ticket){.what = what, .device = device, .api = guard_name(api)};
        return true;
    }
    call->is_loose = bytes == 0 && truth_is_loose(what, device);
    if (call->is_loose) {
        call->ticket = (struct ticket){.what = what, .device = device, .api = guard_name(api)};
        return true;
    }
    if (!limit_reserve_overhead(&call->ticket, what, device, api, bytes))
        return false;
    int saved = errno;
    if (truth_sees_process())
        truth_ask(device, &call->ticket, true); /* what kernels have taken is not the call's */
    errno = saved;
    truth_open(call);
    return true;
}

bool truth_settle(struct truth_call *call)
{
    if (!truth_is_counted(call->ticket.device))
        return true;
    if (call->is_loose) {
        truth_look_late();
        return true;
    }
    int saved = errno;
    if (call->ticket.what == LIMIT_CONTEXT)
        atomic_store_explicit(&truth_has_met[call->ticket.device], true, memory_order_relaxed);
    if (call->ticket.what == LIMIT_CONTEXT)
        call->expected_bytes = (int64_t)limit_context_bytes(call->ticket.device);
    truth_measure(call);
    bool fits = limit_settle_overhead(&call->look, &call->ticket);
    if (fits)
        truth_close(call);
    else if (call->has_card)
        call->look = call->after; /* the card is known of that moment */
    errno = saved;
    return fits;
}

void truth_cancel(struct truth_call *call, unsigned result)
{
    if (truth_is_counted(call->ticket.device) && !call->is_loose) {
        limit_cancel(&call->ticket);
        truth_close(call);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        limit_driver_refused(&call->ticket);
}

void truth_give_up(struct truth_call *call)
{
    int saved = errno;
    uint64_t bytes = call->ticket.bytes;
    call->guess_bytes = 0 - call->guess_bytes;
    call->expected_bytes = -call->moved_bytes;
    truth_measure(call);
    truth_look_at_last(call->ticket.device);
    truth_close(call);
    call->ticket.bytes = bytes;
    limit_give_up(&call->ticket);
    errno = saved;
}

void truth_watch(struct truth_call *call, enum limit_what what, unsigned device)
{
    call->ticket = (struct ticket){.what = what, .device = device};
    truth_open(call);
}

void truth_watched(struct truth_call *call)
{
    if (!truth_is_counted(call->ticket.device))
        return;
    int saved = errno;
    truth_measure(call);
    truth_look_at_last(call->ticket.device);
    truth_close(call);
    errno = saved;
}

void truth_look_gone(unsigned device)
{
    truth_look(device);
    if (truth_is_counted(device))
        truth_look_at_last(device);
}

void truth_watch_late(struct truth_call *call)
{
    CUdevice device;
    call->ticket.device = BUDGET_DEVICES;
    if (atomic_load_explicit(&truth_way, memory_order_relaxed) == TRUTH_BY_CARD &&
        real.cuCtxGetDevice(&device) == CUDA_SUCCESS && start_knows_device((unsigned)device))
        truth_watch(call, LIMIT_CODE, (unsigned)device);
}

/* Handles whose code has been looked at, on a device. To have forgotten one costs a question. */
enum { TRUTH_HANDLES = 256 };
static _Atomic uint64_t truth_handles[TRUTH_HANDLES];

static bool truth_is_new(const void *handle, CUdevice device)
{
    uint64_t key = (uint64_t)(uintptr_t)handle ^ (uint64_t)device << 56;
    _Atomic uint64_t *place = &truth_handles[(key >> 4 ^ key >> 12 ^ key >> 20) % TRUTH_HANDLES];
    return atomic_exchange_explicit(place, key, memory_order_relaxed) != key;
}

void truth_forget_handles(void)
{
    for (unsigned i = 0; i < TRUTH_HANDLES; i++)
        atomic_store_explicit(&truth_handles[i], 0, memory_order_relaxed);
}

/* The current context's device has had no room for code that was to be loaded there. */
static void truth_refused_late(enum api api)
{
    CUdevice device;
    if (real.cuCtxGetDevice(&device) != CUDA_SUCCESS || !start_knows_device((unsigned)device))
        return;
    const struct ticket ticket = {.what = LIMIT_CODE, .device = (unsigned)device, .api = api};
    limit_driver_refused(&ticket);
}

void truth_watched_late(struct truth_call *call, const void *handle, unsigned result, enum api api)
{
    CUdevice device;
    truth_watched(call);
    if (truth_sees_process() && real.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
        truth_is_new(handle, device))
        truth_look((unsigned)device);
    else
        truth_look_late();
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        truth_refused_late(api);
}

void truth_forget(void)
{
    truth_card_forget();
    atomic_store(&truth_way, TRUTH_UNKNOWN);
    for (unsigned device = 0; device < BUDGET_DEVICES; device++)
        atomic_store(&truth_has_met[device], false);
}
